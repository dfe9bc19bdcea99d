"""Run statistics that stopped before the run did: what they miss has a cause of its own, and no number is taken for whole."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from reconcile.adapters.counters.tf_profiler import capture
from reconcile.align.alignment import Alignment
from reconcile.cli import cli
from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import RUN_STATS_TRUNCATED, Entry, Ledger, Op, Sighting, Tensor, Trace
from reconcile.engine.reconcile import books_of, gather_facts

STEPS, UNITS = 100_000, 32
ONE = 2 * UNITS * UNITS  # a row of as many times a square of as many


def product(calls: int) -> Op:
    row, square = Tensor((1, UNITS), "float32"), Tensor((UNITS, UNITS), "float32")
    attrs = {"transpose_a": False, "transpose_b": False, "T": 1}
    return Op("gru/while/body/MatMul", "MatMul", "gru", (row, square), (row,), attrs, calls)


def held(recorded: int, *notes: str) -> tuple[Trace, Ledger]:
    """A loop of ``STEPS`` products, and the ledger of statistics that record this number of products."""
    trace = Trace("tf", {"tensorflow": "2.21.0"}, "graph", (product(STEPS),), (), (), ("gru",), ())
    op = product(recorded)
    entry = Entry(op.id, "gru", "MatMul", ONE * recorded, recorded)
    sighting = Sighting(op, op.id)
    versions = {"tensorflow": "2.21.0"}
    ledger = Ledger(
        "tf.profiler@runmeta", "tf", "FLOP", "graph", versions, entry.value, (entry,), (sighting,), {}, notes
    )
    return trace, ledger


@pytest.mark.parametrize("recorded", [1, 30_000])  # a node without a record keeps its static count: one
def test_what_is_missing_has_its_cause(recorded: int) -> None:
    trace, ledger = held(recorded, RUN_STATS_TRUNCATED)
    (statement,) = books_of(
        gather_facts((trace,), (ledger,), Alignment(())), Conventions(BUILT_IN["matmul"])
    ).statements
    assert statement.state is State.EXPLAINED
    assert statement.residual == 0
    assert statement.to_total == ONE * STEPS
    assert statement.by_cause() == {Cause.RUN_STATS_TRUNCATED: ONE * (STEPS - recorded)}


def test_it_is_that_cause_only_where_they_stopped() -> None:
    trace, ledger = held(1)
    (statement,) = books_of(
        gather_facts((trace,), (ledger,), Alignment(())), Conventions(BUILT_IN["matmul"])
    ).statements
    assert statement.by_cause() == {Cause.LOOP_COUNTED_ONCE: ONE * (STEPS - 1)}


@pytest.mark.parametrize(
    ("recorded", "notes"), [(2**20 - 1, ["of the run"]), (2**20, ["of the run", RUN_STATS_TRUNCATED])]
)
def test_as_many_records_as_the_collector_keeps_are_not_all(
    recorded: int, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """core/common_runtime/step_stats_collector.cc: static const uint64_t kMaxCollectedNodes = 1 << 20."""
    first, rest = [SimpleNamespace(node_name="a")], [SimpleNamespace(node_name="b")] * (recorded - 1)
    devices = [SimpleNamespace(node_stats=first), SimpleNamespace(node_stats=rest)]
    stats = SimpleNamespace(step_stats=SimpleNamespace(dev_stats=devices))
    model = SimpleNamespace(traced_run=lambda: (None, (), stats), run_notes=("of the run",), layers=dict)
    monkeypatch.setattr(capture, "_ledger", lambda *args: args[-1])
    assert capture.runmeta(model) == notes


@pytest.mark.heavy
@pytest.mark.frameworks
def test_a_run_of_more_nodes_than_are_recorded(tmp_path: Path) -> None:
    """A GRU whose loop TensorFlow runs to its end and records in part: a minute, most of it reading a million records."""
    steps, width, units = 20_000, 32, 32
    model = str(Path(__file__).parents[4] / "benchmarks" / "models" / "recurrent.py")
    words = ["--set", f"steps={steps}", "--counter", "tf.profiler@runmeta", "--format", "json", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli, ["run", "--model", model, *words], prog_name="reconcile")
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "recurrent.json").read_text())
    (ledger,), (statement,) = data["ledgers"], data["statements"]
    each = 2 * (width + units) * 3 * units  # by input and by state, three gates
    assert ledger["notes"] == [RUN_STATS_TRUNCATED]
    assert (statement["to_total"], statement["residual"]) == (steps * each, 0)
    products = {e["id"]: e["calls"] for e in ledger["entries"] if e["op"] == "MatMul" and e["calls"] > 1}
    assert len(products) == 2
    cap = 2**20 // len(ledger["entries"])
    assert [node for node, calls in products.items() if calls >= cap] == []
    missed = sum(each // 2 * (steps - calls) for calls in products.values())
    booked = sum(a["amount"] for a in statement["adjustments"] if a["cause"] == Cause.RUN_STATS_TRUNCATED)
    assert booked == missed > 0
