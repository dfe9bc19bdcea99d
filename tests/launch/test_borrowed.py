"""A trace of another version is borrowed only in a framework whose versions name their ops alike; else nothing is compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.core.records import Trace
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected, settle
from reconcile.launch.environments import runs
from reconcile.launch.environments.definitions import Environment
from reconcile.launch.request import Point, RunRequest
from tests.drift import takes

REASON = "ImportError: no module of that age"
WHOLE = takes.committed()


def untraced(framework: str) -> Collected:
    """gru_demo without the trace of one framework, as its environment is too old for the tracer."""
    missing = Missing("trace", framework, State.FAILED, REASON)
    return replace(WHOLE, traces=tuple(missing if t.framework == framework else t for t in WHOLE.traces))


def taken(framework: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Collected, list[bool]]:
    """What an old environment collects, and for each run whether the current environment made it."""
    current: list[bool] = []

    def collect(request: RunRequest, _progress: object = None) -> Collected:
        current.append(not request.python)
        return untraced(framework) if request.python else WHOLE

    monkeypatch.setattr(runs, "ensure", lambda _env, _say: Path("old"))
    monkeypatch.setattr(runs, "collect", collect)
    env = Environment("old", "An old one", "3.8", ("tf", "torch"), ())
    return runs.collect_in(env)(RunRequest("gru_demo"), lambda _event: None), current


def test_pytorch_borrows_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    collected, current = taken("torch", monkeypatch)
    assert current == [False, True]
    assert [type(trace) for trace in collected.traces] == [Trace, Trace]


def test_each_point_borrows_its_own_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second point of an old environment has its own trace; the first borrows that of the first point, in one run."""
    points = [Point({"frames": "10"}), Point({"frames": "11"})]
    asked: list[tuple[bool, tuple[str, ...], bool]] = []

    def named(collected: Collected, name: str) -> Collected:
        return replace(
            collected, traces=tuple(t._replace(device=name) if isinstance(t, Trace) else t for t in collected.traces)
        )

    def collect_at(request: RunRequest, points: list[Point], _progress: object, counting: bool) -> list[Collected]:
        asked.append((not request.python, tuple(point.overrides["frames"] for point in points), counting))
        if request.python:
            return [untraced("torch"), named(WHOLE, "old 11")]
        return [named(WHOLE, "current 10"), named(WHOLE, "current 11")]

    monkeypatch.setattr(runs, "ensure", lambda _env, _say: Path("old"))
    monkeypatch.setattr(runs, "collect_at", collect_at)
    env = Environment("old", "An old one", "3.8", ("tf", "torch"), ())
    collected = runs.collect_at_in(env)(RunRequest("gru_demo"), points, lambda _event: None, True)
    assert asked == [(False, ("10", "11"), True), (True, ("10", "11"), False)]
    devices = [[t.device for t in at.traces if isinstance(t, Trace) and t.framework == "torch"] for at in collected]
    assert devices == [["current 10"], ["old 11"]]


def test_tensorflow_compares_nothing_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    collected, current = taken("tf", monkeypatch)
    assert current == [False]
    assert runs.borrow_trace(collected, WHOLE) == (collected, "")
    result = settle(collected, Conventions(MATMUL))
    states = {ledger.counter: (ledger.state, ledger.reason) for ledger in result.ledgers if ledger.framework == "tf"}
    sentence = f"there is no trace to compare it with: {REASON}"
    assert set(states.values()) == {(State.NOT_COMPARABLE, sentence)}
    assert [s.to for s in result.statements if s.state is State.UNEXPLAINED] == []
