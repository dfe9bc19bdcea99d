"""Settings that nothing was tuned to: other sizes, other layers, other devices reconcile to 0 as the demo does."""

from __future__ import annotations

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from tests.conftest import PAIRS
from tests.run.closing import reconciles

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

RUNS = [
    ("gru_demo", {"units": 64, "frames": 37, "batch": 8}),
    ("gru_demo", {"units": 1, "frames": 4, "classes": 3, "filters": 2, "bins": 9}),
    (str(PAIRS / "bilstm.py"), {}),
    (str(PAIRS / "bilstm.py"), {"batch": 3, "steps": 1, "features": 1, "units": 2}),
]


@pytest.mark.parametrize(("model", "overrides"), RUNS)
def test_reconciles_under_every_convention(collecting, model, overrides):
    reconciles(collecting(model, **overrides))


def test_bilstm_work_is_its_closed_form(collecting):
    """Two layers, two directions: 4H(I + H) MACs per step; the second layer reads both directions of the first."""
    collected = collecting(str(PAIRS / "bilstm.py"))
    batch, steps, features, units, classes = 2, 11, 7, 5, 3
    rows = batch * steps
    lstm = rows * 2 * (4 * units * (features + units) + 4 * units * (2 * units + units))
    head = rows * 2 * units * classes
    result = settle(collected, Conventions(BUILT_IN["matmul"]))
    assert [t.totals["matmul"] for t in result.traces] == [2 * (lstm + head)] * 2
    flop_counter = next(led for led in result.ledgers if led.counter == "flop_counter")
    assert flop_counter.total == 2 * head  # an fp32 LSTM is one oneDNN kernel on the CPU: counted as nothing


def test_where_meta_calls_others_the_counters_run_on_the_cpu_too(collecting):
    """The LSTM is one kernel on the CPU and many products on meta, and what follows it reads its output otherwise."""
    collected = collecting(str(PAIRS / "bilstm.py"), device="meta")
    result = settle(collected, Conventions(BUILT_IN["matmul"]))
    ledgers = {led.counter: led for led in result.ledgers}
    assert collected.traces[1].notes[0].startswith("calls other operators on meta than on the CPU")
    assert {ledgers[name].device for name in ("flop_counter", "fvcore")} == {"cpu"}
    assert ledgers["flop_counter"].total == 2 * 2 * 11 * 2 * 5 * 3  # the head alone, as on the CPU
    for led in result.ledgers:
        assert led.state in (State.EQUAL, State.EXPLAINED, State.FAILED)
        assert led.reason or led.state is not State.FAILED
