"""Which runs are cheap enough to be made on the CPU beside the one on meta."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from reconcile.adapters.pytorch import trace, training  # noqa: E402
from reconcile.adapters.pytorch.tracing.trace_device import is_cheap  # noqa: E402
from tests.adapters.pytorch.training_models import Model, Recurrent  # noqa: E402


@pytest.mark.parametrize(("record", "most"), [(trace._record, 1000), (training.record, 100)])
def test_a_recurrent_layer_of_many_steps_is_not_run_again(record, most):
    """In a training step on the CPU each step is recorded op by op, in about ten milliseconds."""
    found = {}
    for steps in (most, most + 1):
        ops = record(Model(Recurrent, steps, 2, 4), "meta").ops.values()
        found[steps] = is_cheap(Recurrent(), ops)
    assert found == {most: True, most + 1: False}
