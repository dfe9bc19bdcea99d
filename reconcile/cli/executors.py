"""What runs many models for a command: the processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress


def shown(tell: Callable[..., None], *words: str) -> None:
    """Call that with these words, made to show as they are; that nobody listens any more ends no sweep."""
    from ..core.text import clean

    with suppress(OSError):
        tell(*map(clean, words))


@contextmanager
def executor_of(jobs: int | None, dask: str | None) -> Iterator[tuple[Executor, Callable[[], str]]]:
    """Processes of this machine, or the workers of a Dask cluster; and what says why that is gone, '' while it is there.

    Raises UsageError for a cluster that is not there.
    """
    from ..core.errors import UsageError
    from ..sweep.cluster import connected
    from ..sweep.engine import Processes

    if dask is None:
        with Processes(jobs or max(1, (os.cpu_count() or 1) // 2)) as local:
            yield local, lambda: ""
        return
    if jobs is not None:
        raise UsageError(
            "--jobs is for this machine; a Dask cluster runs as many at a time as its workers have threads."
        )
    with connected(dask) as cluster:
        yield cluster.executor, cluster.lost
