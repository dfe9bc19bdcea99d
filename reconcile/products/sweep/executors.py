"""Options --jobs, --dask and --fresh of sweep and audit; ``run_all`` runs their cells, with a progress bar.

The executor is a set of processes on this machine, or a Dask cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...cli.progress import bar
from ...cli.streams import say
from ..number_types import Jobs

if TYPE_CHECKING:
    from .engine import Finished

F = TypeVar("F", bound=Callable[..., Any])


def where_it_runs(command: F) -> F:
    """Decorator of a command: adds --jobs, --dask and --fresh."""
    for add in (
        click.option("--fresh", is_flag=True, help="Run finished models again, too."),
        click.option(
            "--dask",
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster to run on.",
        ),
        click.option("--jobs", type=Jobs(min=1), help="Models at the same time.  [default: half the cores]"),
    ):
        command = add(command)
    return command


def run_all(
    requests: Sequence[Mapping[str, Any]],
    out: Path,
    last: Callable[[list[Finished]], None],
    *,
    jobs: int | None,
    dask: str | None,
    fresh: bool,
    quiet: bool,
    run: Callable[[str], str] | None = None,
) -> list[Finished]:
    """Run these cells and show how far they are; ``last`` and ``run`` are engine.sweep's. Raises UsageError as that does."""
    from . import engine, page

    with _executor(jobs, dask) as (executor, lost), bar(len(requests), quiet) as (begun, tell):
        return engine.sweep(
            requests, out, executor, fresh=fresh, last=last, lost=lost, run=run,
            begun=lambda name: _show_words(begun, name),
            each=lambda one: _show_words(tell, one.name, page.verdict(one)),
            again=lambda name, why: _show_words(partial(say, err=True), f"{name} runs again: {why}."),
        )  # fmt: skip


def count_before(finished: Sequence[Finished]) -> str:
    """How many of them an earlier command had finished, for the sentence that a command ends with."""
    held = sum(one.kept for one in finished)
    return f", {held} of them before" if held else ""


def _show_words(tell: Callable[..., None], *words: str) -> None:
    """Call ``tell`` with these words, escaped; a closed terminal is ignored."""
    from ...core.escaping import escape_line

    with suppress(OSError):
        tell(*map(escape_line, words))


@contextmanager
def _executor(jobs: int | None, dask: str | None) -> Iterator[tuple[Executor, Callable[[], str]]]:
    """Processes of this machine, or the workers of a Dask cluster; and what says why that is gone, '' while it is there.

    Raises UsageError for a cluster that is not there.
    """
    from ...core.errors import UsageError
    from ..forked_workers import warm
    from .cluster import connect_cluster
    from .engine import Processes

    if dask is None:
        with warm(), Processes(jobs or max(1, (os.cpu_count() or 1) // 2)) as local:
            yield local, lambda: ""
        return
    if jobs is not None:
        raise UsageError(
            "--jobs is for this machine; a Dask cluster runs as many at a time as its workers have threads."
        )
    with connect_cluster(dask) as cluster:
        yield cluster.executor, cluster.why_lost
