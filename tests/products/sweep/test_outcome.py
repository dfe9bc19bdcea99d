"""What a cell says of a run, of one that a framework's own refusal cuts short, and of none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import ALL, MATMUL
from reconcile.core.errors import Refused, UsageError
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected
from reconcile.launch.request import RunRequest
from reconcile.products.sweep import cell
from reconcile.products.sweep.cells import Cell, Manner, request_of
from reconcile.products.sweep.outcome import outcome_of
from tests.engine.test_completeness import K, M, N, settled
from tests.report import samples

BOTH = {"tf": "net:make", "torch": "net:make"}
PLAIN = Manner()
Run = Callable[[RunRequest], Answer]


@pytest.mark.parametrize("made", [samples.full, samples.clean, samples.unexplained, samples.everything])
def test_every_counter_adds_up_to_the_work_that_ran(made: Callable[[], Answer]) -> None:
    """From the numbers that are kept alone: total, causes and residual are the work of the trace."""
    found = outcome_of("x", made(), {})
    work = {trace["framework"]: trace["work"] for trace in found["traces"]}
    settled = [one for one in found["counters"] if one["residual"] is not None]
    assert settled or found["between"]
    for one in settled:
        assert one["normalised"] + sum(one["causes"].values()) + one["residual"] == one["work"]
        assert work[one["framework"]] in (one["work"], None)
    for between in (one for one in found["between"] if one["residual"] is not None):
        assert work["tf"] + sum(between["causes"].values()) + between["residual"] == work["torch"] == between["work"]
    assert {one["counter"] for one in found["counters"]} == {ledger.counter for ledger in made().ledgers}


def test_what_has_no_number_says_why() -> None:
    found = outcome_of("x", samples.incomplete(), {})
    assert [trace for trace in found["traces"] if trace["work"] is None and trace["reason"]], found["traces"]
    assert found["open"]
    assert found["exit_code"] == 1


def test_a_sweep_has_a_total_where_there_is_one() -> None:
    for convention, total in ((MATMUL, 2 * M * K * N), (ALL, None)):
        row = outcome_of("m", settled(convention), {})["traces"][0]
        assert row["work"] == total
        assert row["totals"] == {"matmul": 2 * M * K * N}


def said(monkeypatch: pytest.MonkeyPatch, folder: Path, run: Run, manner: Manner = PLAIN) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    found = Collected({}, (), ())
    monkeypatch.setattr(cell, "run_steps", lambda job: replace(job, collected=found, answer=run(job.request)))
    return cell.answer(request_of(Cell("net", factories=BOTH), manner, ()), folder)


def test_a_framework_in_which_the_model_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[RunRequest] = []

    def run(request: RunRequest) -> Answer:
        asked.append(request)
        if "torch" in request.factories:
            raise Refused("it raised ValueError.", "torch", "printed", "/tmp/some.log")
        return samples.clean()

    found = said(
        monkeypatch, tmp_path, run, Manner({"counters": ["tf.profiler@frozen", "thop"]}, formats=("md", "csv"))
    )
    assert found["outcome"]["refused"] == {"torch": "it raised ValueError."}  # without where a log is: never the same
    assert found["outcome"]["exit_code"] == 0
    assert sorted(found["texts"]) == ["csv", "md"]
    assert [dict(request.factories) for request in asked] == [BOTH, {"tf": "net:make"}]
    assert asked[1].counters == ("tf.profiler@frozen",)


def test_a_cell_is_run_as_its_manner_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[RunRequest] = []

    def run(request: RunRequest) -> Answer:
        asked.append(request)
        return samples.clean()

    options = {"counters": ["thop"], "convention": "all", "device": "meta", "timeout": 7.0}
    manner = Manner(options, {"formulas": {"0-f.py": "x = 1"}}, ("md", "html"))
    said(monkeypatch, tmp_path, run, manner)
    (request,) = asked
    assert (request.counters, request.convention, request.device, request.timeout) == (("thop",), "all", "meta", 7.0)
    assert [path.read_text() for path in request.formulas] == ["x = 1"]
    assert (request.every_convention, dict(request.factories)) == (True, BOTH)


def test_the_command_of_a_cell() -> None:
    inputs = (("x", (1, 3), "int64"),)
    made = Cell("net", factories=BOTH, inputs=inputs, environment={"name": "tf-2.3.1"})
    options = {"convention": "all", "counters": ["thop", "fvcore"], "device": "meta", "timeout": 7.0}
    assert cell.command_of(made, Manner(options)) == (
        "reconcile run --torch net:make --tf net:make --input x=1,3:int64 --convention all --counter thop --counter fvcore "
        "--environment tf-2.3.1 --device meta"
    )
    pair = Cell("gru", model="gru_demo", overrides={"units": "3"})
    assert cell.command_of(pair, PLAIN) == "reconcile run --model gru_demo --set units=3"
    assert cell.command_of(pair, Manner(texts={"formulas": {"0-f.py": ""}})) == ""
    assert cell.command_of(Cell("a", factories=BOTH, arguments={"width": 3}), PLAIN) == ""


def test_refused_everywhere_and_refused_by_us(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def declined(request: RunRequest) -> Answer:
        first = next(iter(request.factories))
        raise Refused(f"no {first}.", first)

    found = said(monkeypatch, tmp_path, declined)
    assert found["outcome"]["refused"] == {"tf": "no tf.", "torch": "no torch."}
    assert (found["outcome"]["exit_code"], found["texts"], found["interrupted"]) == (2, {}, "")

    def broken(_request: RunRequest) -> Answer:
        raise UsageError("there is no module net.")

    found = said(monkeypatch, tmp_path, broken)
    assert found["outcome"]["refused"] == {"": "there is no module net."}
    assert found["outcome"]["exit_code"] == 2

    def killed(_request: RunRequest) -> Answer:
        raise Refused("the factory net:make: its process was killed (signal 9: out of memory?).")

    found = said(monkeypatch, tmp_path, killed)
    assert found["interrupted"]
    assert list(found["outcome"]["refused"]) == [""]


def test_a_run_that_lost_a_worker_asks_for_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = samples.clean()
    lost = replace(
        result.ledgers[0], state=State.FAILED, reason="its process was killed (signal 9: out of memory?)", total=None,
        normalised_total=None, entries=(), unsupported={},
    )  # fmt: skip
    assert not said(monkeypatch, tmp_path, lambda _request: result)["interrupted"]
    cut = replace(result, ledgers=(lost, *result.ledgers[1:]))
    monkeypatch.setattr(cell.reports, "render", lambda *_all: {})
    assert said(monkeypatch, tmp_path, lambda _request: cut)["interrupted"] == lost.reason
    note = "cannot run on meta (its process was killed (signal 9: out of memory?)): traced on the CPU"
    noted = replace(result, traces=(replace(result.traces[0], notes=(note,)), *result.traces[1:]))
    assert said(monkeypatch, tmp_path, lambda _request: noted)["interrupted"] == note
