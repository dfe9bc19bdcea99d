"""Runs tasks in processes that are forked from this one, several at a time, each for so many seconds at most."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import connection
from time import monotonic
from typing import Any

from ....core.errors import describe_error
from ....worker.process_guard import end_with


def run_forked(tasks: Mapping[str, Callable[[], Any]], jobs: int, limit: float) -> Iterator[tuple[str, Any, str]]:
    """Each name with what its task returned, or with None and why it returned nothing, in the order in which they end.

    A process begins with all that is imported here, and what it imports or allocates goes with it.
    """
    fork, waiting = multiprocessing.get_context("fork"), list(tasks.items())
    running: dict[connection.Connection, tuple[str, Any, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, task = waiting.pop(0)
                ours, theirs = fork.Pipe(duplex=False)
                process = fork.Process(target=_send, args=(task, theirs, os.getpid()), daemon=True)
                process.start()
                theirs.close()
                running[ours] = (name, process, monotonic() + limit)
            soonest = min(latest for _, _, latest in running.values())
            ready = connection.wait(list(running), max(soonest - monotonic(), 0))
            for end in list(running):
                name, process, latest = running[end]
                if end in ready or monotonic() >= latest:
                    found = (None, "its process ended" if end in ready else f"it took more than {limit:g} seconds")
                    with contextlib.suppress(EOFError):
                        found = end.recv() if end in ready else found
                    del running[end]
                    _end_process(process, end)
                    yield name, *found
    finally:
        for end, (_, process, _) in running.items():
            _end_process(process, end)


def _end_process(process: Any, end: connection.Connection) -> None:
    process.kill()
    process.join()
    end.close()


def _send(task: Callable[[], Any], theirs: connection.Connection, starter: int) -> None:
    """Run a task in its process, which ends with the one that started it, and send what it returns."""
    end_with(starter)
    try:
        theirs.send((task(), ""))
    except Exception as error:
        theirs.send((None, f"it raised {describe_error(error)}"))
