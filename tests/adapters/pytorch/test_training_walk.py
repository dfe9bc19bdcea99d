"""A training step of every layer: its trace is complete, and flop_counter's figure is explained to the last unit."""

from __future__ import annotations

import pytest
import torch

from reconcile.adapters.pytorch import training
from reconcile.work import UnknownWork, work_of
from tests.adapters.pytorch import walk
from tests.adapters.pytorch.training_models import Model, explained

CASES = walk.cases()
CHEAP = {*walk.UNKNOWN, *list(CASES)[::6]}
pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # what PyTorch says of a layer (KLDivLoss, padding) is none of our business


class Walked(Model):
    """Any number of inputs."""

    def example(self, device):
        return [torch.ones(shape, device=device) for shape in self.shape]


def unknown(trace):
    found = set()
    for op in trace.ops:
        try:
            work_of(op)
        except UnknownWork:
            found.add(op.op)
    return found


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in CHEAP else pytest.mark.slow) for n in CASES])
def test_every_gradient_has_its_work(name):
    make, shapes = CASES[name]
    trace = training.trace(Walked(make, *shapes))
    assert trace.device == ("cpu" if name.endswith("_branch") else "meta"), "a branch needs values"
    if name in walk.UNKNOWN:
        assert walk.UNKNOWN[name] in unknown(trace)
    else:
        assert unknown(trace) == set()


@pytest.mark.slow
@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize("name", [name for name in CASES if name not in walk.UNKNOWN])
def test_flop_counter_is_explained(name, device):
    make, shapes = CASES[name]
    explained(Walked(make, *shapes, device=device))
