"""Runs the cells of a sweep on an executor, and saves each finished one: an interrupted sweep can be resumed.

A cell's file is written whole or not at all, and is used again only if its key is that of the requested cell (store.py).
If a cell's process is ended from outside (memory, a signal, a lost machine), the cell loses one of its ``TRIES``, and no other
cell loses any.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import EXIT_CRASHED, EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, EXIT_USAGE, UsageError
from . import cell, store
from .outcome import refused_outcome

TRIES = 2
POLL = 0.5
"""Seconds between two looks at what has begun."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A cell's outcome (outcome.py) and what it cost: ``wall_s``, ``peak_bytes``. ``kept`` if an earlier sweep ran it."""

    outcome: Mapping[str, Any]
    cost: Mapping[str, Any]
    kept: bool = False

    @property
    def name(self) -> str:
        """The cell's name."""
        name: str = self.outcome["name"]
        return name

    @property
    def exit_code(self) -> int:
        """As a run's."""
        code: int = self.outcome["exit_code"]
        return code


class Processes(ThreadPoolExecutor):
    """An executor on this machine: a thread per slot, as every cell has a process of its own. A caller that shuts it down without
    waiting ends these."""

    def __init__(self, jobs: int) -> None:
        super().__init__(max_workers=jobs, thread_name_prefix="sweep")
        self._submitted: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See Executor.submit."""
        self._submitted.append(super().submit(fn, *args, **kwargs))
        return self._submitted[-1]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See Executor.shutdown."""
        super().shutdown(wait=wait, cancel_futures=cancel_futures)
        while not wait and not all(future.done() for future in self._submitted):
            for process in list(cell.RUNNING):
                process.kill()
            time.sleep(POLL / 10)


def sweep(
    requests: Sequence[Mapping[str, Any]],
    folder: Path,
    executor: Executor,
    *,
    fresh: bool = False,
    begun: Callable[[str], None] = lambda _name: None,
    each: Callable[[Finished], None] = lambda _finished: None,
    again: Callable[[str, str], None] = lambda _name, _why: None,
    last: Callable[[list[Finished]], None] = lambda _finished: None,
    lost: Callable[[], str] = lambda: "",
    run: Callable[[str], str] | None = None,
) -> list[Finished]:
    """Run these cells (cells.request_of); ``run`` is what the executor is handed, cell.run_cell unless another is given.

    Those that lie finished in ``folder`` are not run again unless ``fresh``; ``again`` hears of every one that is because what
    is kept of it is damaged, and why. ``begun`` hears of every one that starts, as far as the executor tells, ``each`` of
    every one as it is finished, and ``last`` of all of them while no other sweep writes to the folder. They come in the
    order given. ``lost`` is asked now and then, and says why the executor is gone, '' while it is there.

    Raises UsageError if another sweep writes to the folder, if it cannot be written, and if the executor is gone.
    """
    done: dict[str, Finished] = {}
    with store.hold_alone(folder, [name_of(request) for request in requests]):
        for request in () if fresh else requests:
            held = _load_finished(folder, request, again)
            if held is not None:
                done[held.name] = held
                each(held)
        rest = [request for request in requests if name_of(request) not in done]
        try:
            with closing(_answers(rest, executor, begun, lost, run or cell.run_cell)) as answers:
                for request, answer in answers:
                    finished = Finished(answer["outcome"], answer["cost"])
                    store.keep(folder, finished.name, request["key"], answer)
                    done[finished.name] = finished
                    each(finished)
        except BaseException:
            with suppress(Exception):  # of an executor that is gone already; what ended the sweep is what is said
                executor.shutdown(wait=False)
            raise
        found = [done[name_of(request)] for request in requests]
        last(found)
    return found


def _load_finished(folder: Path, request: Mapping[str, Any], again: Callable[[str, str], None]) -> Finished | None:
    """The finished cell of that request; None, and ``again`` hears why, where what is kept of it cannot be relied on."""
    try:
        data = store.find(folder, name_of(request), request["key"])
    except store.Malformed as error:
        again(name_of(request), str(error))
        return None
    return None if data is None else Finished(data["outcome"], data["cost"], kept=True)


def name_of(request: Mapping[str, Any]) -> str:
    """The name of a request's cell."""
    name: str = request["cell"]["name"]
    return name


def exit_code(finished: Sequence[Finished]) -> int:
    """The worst: a defect of ours, then unexplained, failed, refused, as of a single run."""
    codes = {one.exit_code for one in finished}
    return next((code for code in (EXIT_CRASHED, EXIT_UNEXPLAINED, EXIT_FAILED, EXIT_USAGE) if code in codes), EXIT_OK)


def _answers(
    requests: Sequence[Mapping[str, Any]],
    executor: Executor,
    begun: Callable[[str], None],
    lost: Callable[[], str],
    run: Callable[[str], str],
) -> Generator[tuple[Mapping[str, Any], dict[str, Any]]]:
    """Every request with its answer, as they come; what was ended from outside is tried again, last.

    Closed before its end, it cancels what has not begun: not every executor's ``shutdown`` can do that (Dask's cannot).
    """
    waiting: dict[Future[str], tuple[Mapping[str, Any], int]] = {}
    started: set[Future[str]] = set()

    def submit(request: Mapping[str, Any], tries: int) -> None:
        try:
            waiting[executor.submit(run, json.dumps(request))] = request, tries
        except RuntimeError as error:  # it was shut down, or is broken
            raise _folder_gone(str(error).strip().rstrip(".") or type(error).__name__) from error

    try:
        for request in requests:
            submit(request, TRIES)
        while waiting:
            over = _next(waiting, started, begun)
            if over is None:
                if why := lost():
                    raise _folder_gone(why)
                continue
            request, tries, answer = over
            if answer["interrupted"] and tries > 1:
                submit(request, tries - 1)
            else:
                yield request, answer
    finally:
        for future in waiting:
            future.cancel()


def _next(
    waiting: dict[Future[str], tuple[Mapping[str, Any], int]],
    started: set[Future[str]],
    begun: Callable[[str], None],
) -> tuple[Mapping[str, Any], int, dict[str, Any]] | None:
    """What is over within a while, the first that was asked for; its future is forgotten, here and everywhere.

    As long as a future is held, Dask keeps its result and computes it again if its worker is lost.
    """
    over, _ = wait(waiting, timeout=POLL, return_when=FIRST_COMPLETED)
    for future in [f for f in waiting if f not in started and (f in over or f.running())]:
        started.add(future)
        begun(name_of(waiting[future][0]))
    first = next((f for f in waiting if f in over), None)
    if first is None:
        return None
    started.discard(first)
    request, tries = waiting.pop(first)
    return request, tries, _answer(request, first)


def _answer(request: Mapping[str, Any], future: Future[str]) -> dict[str, Any]:
    """What the executor hands back, or a failed cell that says why there is nothing."""
    try:
        answer: dict[str, Any] = json.loads(future.result())
        if answer["key"] != request["key"]:
            raise ValueError
    except CancelledError as error:
        raise _folder_gone("it has cancelled what it was given") from error
    except (ValueError, LookupError, TypeError):
        answer = {"died": "what its process handed back is no answer", "log": ""}
    except Exception as error:  # a process of the pool that broke, a machine that went away too often
        answer = {"died": f"{type(error).__name__}: {str(error).strip()[:300]}".rstrip(": ."), "log": ""}
    if "died" not in answer:
        return answer
    last = next((line for line in reversed(answer["log"].splitlines()) if line.strip()), "")
    sentence = answer["died"] + (f"; its last words: {last[:200]}" if last else "")
    failed = {**refused_outcome(name_of(request), {"": sentence}), "exit_code": EXIT_FAILED}
    return {"outcome": failed, "texts": {}, "cost": {}, "interrupted": sentence}


def _folder_gone(why: str) -> UsageError:
    return UsageError(f"lost the executor ({why}). Finished models are saved; run the command again to resume.")
