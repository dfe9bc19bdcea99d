"""A training step of a pair, through a worker per framework: phase by phase against closed forms."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.errors import EXIT_OK
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from tests.zoo.test_steps_fresh import counters_are_explained

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

SIZES = {"batch": 2, "frames": 9, "bins": 16, "filters": 3, "units": 5, "classes": 4}


@pytest.fixture(scope="module")
def found():
    return collect(RunRequest("gru_demo", {k: str(v) for k, v in SIZES.items()}, training="sgd"))


def test_phases_of_both_frameworks(found):
    result = settle(found, Conventions(BUILT_IN["matmul"]))
    b, f, h, c = (SIZES[name] for name in ("batch", "filters", "units", "classes"))
    steps, columns = SIZES["frames"] - 3, (SIZES["bins"] - 4) // 2 + 1
    conv = 2 * b * steps * columns * f * 16
    inside, state = 2 * b * steps * 3 * h * f * columns, 2 * b * 3 * h * h
    line = 2 * b * steps * h * c
    forward = conv + inside + steps * state + line
    tf, torch = (result.by_phase(trace) for trace in result.traces)
    assert tf == {
        "forward": forward,
        "loss": 0,
        "input-gradient": forward - conv,
        "weight-gradient": forward,
        "optimizer": 0,
    }
    # PyTorch asks for no gradient with respect to the first state, which is 0
    assert torch == {**tf, "input-gradient": forward - conv - state}
    assert result.exit_code == EXIT_OK
    (bridge,) = (s for s in result.statements if (s.from_, s.to) == ("trace@tf", "trace@torch"))
    (only,) = bridge.adjustments
    assert (only.cause, only.layer, only.amount) == (Cause.REAL_WORK_DIFFERS, "gru", -state)
    counters_are_explained(found)


def test_the_loss_is_one_layer_for_both(found):
    result = settle(found, Conventions(BUILT_IN["all"]))
    (row,) = (row for row in result.layers if row.layer == "(loss)")
    n = SIZES["batch"] * (SIZES["frames"] - 3) * SIZES["classes"]
    assert row.work == {"tf": 3 * n + (n - 1) + (n + 1), "torch": 3 * n + (n - 1) + (n + 1)}
