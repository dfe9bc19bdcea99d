"""The engine of a sweep: nothing finished is lost or repeated, whatever ends it and whenever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.sweep import engine
from reconcile.products.sweep.engine import Finished
from tests.products.sweep.fakes import LOG, answer, outcome, request

ROOT = Path(__file__).resolve().parents[3]
NAMES = ["a", "b", "c", "d"]


class Inline(Executor):
    """Runs at once, in the caller: any Executor will do."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Remembering(Inline):
    """Knows of every future that it gave whether it is still held."""

    def __init__(self) -> None:
        self.given: list[weakref.ref[Future[Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        self.given.append(weakref.ref(future))
        return future

    def held(self) -> int:
        return sum(future() is not None for future in self.given)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The names of the cells that were run so far."""
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv(LOG, str(log))
    return lambda: log.read_text().split()


def sweep(folder: Path, names: Sequence[str] = NAMES, executor: Executor | None = None, **more: Any) -> list[Finished]:
    return engine.sweep([request(name) for name in names], folder, executor or Inline(), **{"run": answer, **more})


def outcomes(folder: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text())["outcome"] for path in (folder / "cells").glob("*.json")}


def test_what_is_finished_is_held_by_nobody(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    """Dask recomputes the results of a lost worker as long as their futures are held."""
    executor, held = Remembering(), []
    sweep(tmp_path / "out", executor=executor, each=lambda _finished: held.append(executor.held()))
    assert ran() == NAMES
    assert held == [3, 2, 1, 0]


def test_what_is_finished_is_not_run_again(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    first = sweep(tmp_path / "out")
    assert [one.name for one in first] == NAMES
    assert ran() == NAMES
    assert (tmp_path / "out" / "a.md").read_text() == "# a\n"
    heard: list[str] = []
    again = sweep(tmp_path / "out", ["d", "e", "a"], each=lambda one: heard.append(one.name))
    assert ran() == [*NAMES, "e"]
    assert [(one.name, one.kept) for one in again] == [("d", True), ("e", False), ("a", True)]
    assert sorted(heard) == ["a", "d", "e"]
    assert {one.name: one.outcome for one in again}["a"] == first[0].outcome
    sweep(tmp_path / "out", ["a"], fresh=True)
    assert ran() == [*NAMES, "e", "a"]


def test_a_cell_that_was_ended_from_outside_is_tried_once_more(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    tries: list[str] = []

    def falls(text: str) -> str:
        name = json.loads(text)["cell"]["name"]
        tries.append(name)
        if name == "b" or (name == "c" and tries.count("c") == 1):
            return json.dumps(
                {
                    "key": f"key of {name}",
                    "died": "its process was killed (signal 9: out of memory?)",
                    "log": "\nlast\n",
                }
            )
        return answer(text)

    found = sweep(tmp_path / "out", run=falls)
    assert [tries.count(name) for name in NAMES] == [1, 2, 2, 1]
    assert [one.exit_code for one in found] == [0, 3, 0, 0]
    assert found[1].outcome["refused"] == {
        "": "its process was killed (signal 9: out of memory?); its last words: last"
    }
    assert sorted(outcomes(tmp_path / "out")) == ["a", "c", "d"]  # what was not finished is not kept
    sweep(tmp_path / "out")
    assert ran() == ["a", "d", "c", "b"]


def test_a_killed_worker_gives_the_cell_a_second_try_that_stands(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    tries = 0

    def half(text: str) -> str:
        nonlocal tries
        tries += 1
        said = json.loads(answer(text))
        return json.dumps({**said, "interrupted": "its process was killed", "cost": {"wall_s": tries}})

    (found,) = sweep(tmp_path / "out", ["a"], run=half)
    assert (tries, found.cost["wall_s"]) == (2, 2)
    assert "a" in outcomes(tmp_path / "out")


def test_an_executor_that_loses_a_cell_costs_that_cell_alone(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    def lost(text: str) -> str:
        if json.loads(text)["cell"]["name"] == "b":
            raise RuntimeError("the worker went away three times.")
        return answer(text)

    found = sweep(tmp_path / "out", run=lost)
    assert [one.exit_code for one in found] == [0, 3, 0, 0]
    assert found[1].outcome["refused"] == {"": "RuntimeError: the worker went away three times"}


def test_an_executor_that_is_gone_ends_the_sweep_in_a_sentence(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    def gone(text: str) -> str:
        if json.loads(text)["cell"]["name"] == "c":
            raise CancelledError
        return answer(text)

    with ThreadPoolExecutor(1) as pool, pytest.raises(UsageError, match="Finished models are saved"):
        sweep(tmp_path / "out", executor=pool, run=gone)
    assert "a" in outcomes(tmp_path / "out")
    with ThreadPoolExecutor(1) as pool:
        pool.shutdown()
        with pytest.raises(UsageError, match="lost the executor"):
            sweep(tmp_path / "out", executor=pool)


class Plain(Inline):
    """As Dask's: its ``shutdown`` takes nothing but ``wait``, and what it was given stays pending until it is cancelled."""

    def __init__(self, ready: int = 0) -> None:
        self.ready, self.pending, self.ended = ready, [], [False]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.ready -= 1
        if self.ready >= 0:
            return super().submit(fn, *args, **kwargs)
        self.pending.append(Future())
        return self.pending[-1]

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        self.ended = [not wait and all(future.cancelled() for future in self.pending)]


def test_what_has_not_begun_is_cancelled_in_any_executor(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    def stop(_one: Finished) -> None:
        raise KeyboardInterrupt

    executor = Plain(ready=1)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "out", executor=executor, each=stop)
    assert len(executor.pending) == len(NAMES) - 1
    assert executor.ended == [True]
    assert ran() == ["a"]


@pytest.mark.parametrize(
    "handed", ["", "{", "[]", "3", "null", json.dumps({"outcome": {}, "cost": {}}), json.dumps({"key": "key of z"})]
)
def test_an_answer_that_is_none_is_a_failed_cell(tmp_path: Path, handed: str) -> None:
    (found,) = sweep(tmp_path / "out", ["a"], run=lambda _text: handed)
    assert found.exit_code == 3
    assert found.outcome["refused"][""].startswith("what its process handed back is no answer")
    assert not outcomes(tmp_path / "out")


def test_two_sweeps_do_not_write_to_one_folder(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    def inside(_one: Finished) -> None:
        with pytest.raises(UsageError, match="another sweep writes to"):
            sweep(tmp_path / "out", ["z"])

    sweep(tmp_path / "out", ["a"], each=inside)
    sweep(tmp_path / "out", ["z"])
    assert ran() == ["a", "z"]


def test_an_interruption_keeps_what_is_finished(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    def stop(one: Finished) -> None:
        if one.name == "b":
            raise KeyboardInterrupt

    with engine.Processes(1) as executor, pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "out", executor=executor, each=stop)
    kept = set(outcomes(tmp_path / "out"))
    assert {"a", "b"} <= kept
    before = ran()
    sweep(tmp_path / "out")
    assert sorted(ran()[len(before) :]) == sorted(set(NAMES) - kept)


SWEEP = """
import sys
from pathlib import Path
from reconcile.products.sweep import engine
from tests.products.sweep.fakes import request, slowly
with engine.Processes(2) as executor:
    engine.sweep([request(str(n)) for n in range(8)], Path(sys.argv[1]), executor, run=slowly)
"""


def test_sigkill_in_the_middle_loses_and_repeats_nothing(tmp_path: Path, ran: Callable[[], list[str]]) -> None:
    """A cell that was running may run again; one that was finished never does."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", SWEEP, str(out)]
    names = list(map(str, range(8)))
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        while len(list(out.glob("cells/*.json"))) < 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    kept = outcomes(out)
    assert 3 <= len(kept) < len(names)
    half = next(name for name in names if name not in kept)
    (out / "cells" / f".{half}.json.sweep-0123abcd.tmp").write_text("{")
    (out / f".{half}.md.sweep-0123abcd.tmp").write_text("#")
    before = ran()
    sweep(out, names)
    assert sorted(ran()[len(before) :]) == sorted(set(names) - set(kept))
    assert outcomes(out) == {name: outcome(name) for name in names}
    assert not list(out.glob("**/*.tmp"))
