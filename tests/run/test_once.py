"""The answer of a run is computed once, whatever reports are made of it; the command and ``reconcile.run`` give the same one.

No framework starts: what the workers found is in the committed baseline.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from click.testing import CliRunner

import reconcile
from reconcile import workflow
from reconcile.cli import cli
from reconcile.core import conventions
from reconcile.core.conventions import BUILT_IN
from reconcile.drift import baselines
from reconcile.engine import phases, verdict
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected
from reconcile.launch import runner
from reconcile.launch.request import run_request
from reconcile.products.decode.sources import SHIPPED
from reconcile.work import formula_files


@pytest.fixture(autouse=True)
def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collected:
    """What every run of this module collects: a trace with a loss, so that it has phases, and a published figure."""
    found = baselines.load(SHIPPED / "gru_demo" / "current.json").collected
    first, *rest = found.traces
    assert not hasattr(first, "state")
    ops = (*first.ops, first.ops[0]._replace(id="again", phase="loss"))
    meta = {**found.meta, "training": "sgd", "context": None, "published": [("1,234", "the forward pass", "a paper")]}
    found = replace(found, meta=meta, traces=(first._replace(ops=ops), *rest))
    monkeypatch.setattr(runner, "collect", lambda request, progress: found)
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text("from reconcile.work import no_arithmetic\nno_arithmetic('a test', 'mine.op')\n")
    return found


def run(*words: str) -> None:
    """``reconcile run --model gru_demo`` in this process."""
    done = CliRunner().invoke(cli, ["run", "--model", "gru_demo", *words], prog_name="reconcile")
    assert done.exit_code in (0, 1), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)


def calls(work: Callable[[], object], heard: Callable[[FrameType], None]) -> None:
    """Let ``heard`` hear of every call of a function during ``work``, at its start."""

    def trace(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED:  # no class and no module
            heard(frame)

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)


ONCE = (verdict.counters_of, verdict.verdict, conventions.conventions_of, formula_files.load_formulas)


@dataclass
class Heard:
    """What a run called: how often each of these functions, the tables by phase."""

    made: Counter[str] = field(default_factory=Counter)
    tables: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: dict[CodeType, str] = field(default_factory=lambda: {each.__code__: each.__name__ for each in ONCE})

    def __call__(self, frame: FrameType) -> None:
        if frame.f_code in self.names:
            self.made[self.names[frame.f_code]] += 1
        elif frame.f_code is phases.phase_table.__code__:
            self.tables[frame.f_locals["trace"].name, frame.f_locals["convention"].name] += 1


def test_nothing_is_computed_twice() -> None:
    """No table of the run's own convention is made a second time for the page, the CSV, the JSON, the Markdown or the screen."""
    heard = Heard()
    calls(lambda: run("--format", "md,csv,json,card", "--verbose", "--formulas", "own.py"), heard)
    assert heard.made == {each.__name__: 1 for each in ONCE}
    assert set(heard.tables.values()) == {1}
    assert len(heard.tables) == 2 * 2  # of both traces: the run's convention, and the one that counts everything


def test_a_page_has_a_verdict_per_convention() -> None:
    heard = Heard()
    calls(lambda: run("--format", "md,csv,json,html", "--formulas", "own.py"), heard)
    views = len(BUILT_IN)
    assert heard.made == {"counters_of": views, "verdict": views, "conventions_of": 1, "load_formulas": 1}
    assert set(heard.tables.values()) == {1}
    assert len(heard.tables) == 2 * views


def test_a_second_verdict_and_a_second_overture_are_heard() -> None:
    heard = Heard()
    calls(
        lambda: [verdict.verdict(workflow.run(run_request(model="gru_demo", formulas=["own.py"]))) for _ in range(2)],
        heard,
    )
    assert heard.made == dict.fromkeys((each.__name__ for each in ONCE), 2)


@pytest.mark.parametrize("words", [(), ("--convention", "all"), ("--pass", "training")])
def test_the_command_and_python_give_the_same_answer(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Answer] = []
    done = workflow.run

    def keeping(*arguments: Any) -> Answer:
        kept.append(done(*arguments))
        return kept[-1]

    monkeypatch.setattr(workflow, "run", keeping)
    run(*words)
    given = {
        name.removeprefix("--").replace("pass", "pass_"): value
        for name, value in zip(words[::2], words[1::2], strict=True)
    }
    found = reconcile.run(model="gru_demo", **given).result
    command, python = kept
    assert found is python
    assert command == python
    assert command.verdict == python.verdict
    assert len(python.others) == len(BUILT_IN) - 1
    assert bool(python.published) == ("training" in words)
