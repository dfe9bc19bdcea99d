"""What stands for a TorchModel in tests of a training step."""

from __future__ import annotations

import torch

from reconcile.adapters.counters.flop_counter.capture import capture
from reconcile.adapters.pytorch import training
from reconcile.align.alignment import Alignment
from reconcile.core.conventions import BUILT_IN
from reconcile.engine.ledger import reconcile_ledger
from reconcile.work import work_of


class Model:
    """What makes the network, the shape of its input, the optimiser."""

    def __init__(self, make, *shape, optimizer="sgd", device="meta", dtype=torch.float32):
        self.make, self.shape, self.training, self.device, self.dtype = make, shape, optimizer, device, dtype

    def build(self, device):
        torch.manual_seed(0)
        return self.make().to(device)

    def example(self, device):
        return [torch.ones(self.shape, dtype=self.dtype, device=device)]


def explained(model):
    """flop_counter's step reconciles under every convention; returns its causes under matmul."""
    ledger, trace = capture("flop_counter", model), training.trace(model)
    found = {}
    for name, convention in BUILT_IN.items():
        done = reconcile_ledger(ledger, trace, Alignment([]), convention)
        assert done.residuals == ()
        total = sum(convention.flops(work_of(op)) * op.calls for op in trace.ops)
        assert ledger.total + sum(line.amount for line in done.adjustments) == total
        found[name] = {line.cause for line in done.adjustments}
    return found["matmul"]
