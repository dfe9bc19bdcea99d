"""What stands for a TorchModel in tests of a training step."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from reconcile.adapters.counters.flop_counter.capture import capture
from reconcile.adapters.pytorch import training
from reconcile.adapters.pytorch.trace import finish_trace
from reconcile.align.alignment import Alignment
from reconcile.core.conventions import BUILT_IN
from reconcile.engine.ledger import reconcile_ledger
from reconcile.work import work_of


class Model:
    """What makes the network, the shape of its input, the optimiser."""

    def __init__(self, make, *shape, optimizer="sgd", device="meta", dtype=torch.float32):
        self.quick = self.trains_inputs = False
        self.make, self.shape, self.training, self.device, self.dtype = make, shape, optimizer, device, dtype

    def build(self, device):
        torch.manual_seed(0)
        return self.make().to(device)

    def too_large(self):
        return ""

    def guard_memory(self):
        return nullcontext()

    def example(self, device):
        return [torch.ones(self.shape, dtype=self.dtype, device=device)]


def traced(model):
    """The trace of its training step on the device that the model is for, where its counters run."""
    return finish_trace(training.record(model, model.device), model.device, ())


def explained(model):
    """flop_counter's step reconciles under every convention; returns its causes under matmul."""
    ledger, trace = capture("flop_counter", model), traced(model)
    found = {}
    for name, convention in BUILT_IN.items():
        done = reconcile_ledger(ledger, trace, Alignment([]), convention)
        assert done.residuals == ()
        total = sum(convention.flops(work_of(op)) * op.calls for op in trace.ops)
        assert ledger.total + sum(line.amount for line in done.adjustments) == total
        found[name] = {line.cause for line in done.adjustments}
    return found["matmul"]


def ran(make, *shape, **options):
    """The ops of its training step."""
    return training.trace(Model(make, *shape, **options)).ops


class Recurrent(nn.Module):
    def __init__(self, kind=nn.GRU):
        super().__init__()
        self.before = nn.Linear(4, 4)
        self.steps = kind(4, 5)
        self.after = nn.Linear(5, 2)

    def forward(self, x):
        return self.after(self.steps(self.before(x))[0])


class Saved(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
        self.outer = nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(self.inner, self.outer(x), use_reentrant=False)


class Outputs(TorchDispatchMode):
    """Keeps what one operator returns."""

    def __init__(self, name):
        super().__init__()
        self.name, self.found = name, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.found += [out] if func._schema.name == self.name else []
        return out
