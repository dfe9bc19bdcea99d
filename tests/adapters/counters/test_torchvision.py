"""Counters and traces of models with torchvision's operators, which are declared here: torchvision is not needed."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch

import reconcile
from reconcile.adapters.counters.limits import NO_VALUES, reason_of
from reconcile.core.causes import Cause, State
from reconcile.core.errors import UsageError
from tests.work.torchvision_ops import declared

nn = torch.nn
OPS = torch.ops.torchvision

B, IN, OUT, SIZE = 2, 4, 6, 8
PLACES = B * SIZE * SIZE
STEM, OFFSET, MASK = PLACES * 9 * 3 * IN, PLACES * 9 * IN * 18, PLACES * 9 * IN * 9
DEFORMED = PLACES * 9 * IN * OUT
REGIONS = 3
HEAD = REGIONS * (OUT * 4) * 5
"""Products of each layer."""
GRADIENTS = {
    "stem": [STEM, 0, STEM], "offset": [OFFSET] * 3, "mask": [MASK] * 3, "deformed": [DEFORMED] * 3, "head": [HEAD] * 3,
}  # fmt: skip
"""Products of each layer forward, for the gradient of its input, and of its weight: the model's input needs none."""
COUNTERS = ("thop", "fvcore", "flop_counter", "torch.profiler")


@pytest.fixture(scope="module", autouse=True)
def operators() -> Any:
    with declared() as ops:
        yield ops


class DeformConv2d(nn.Module):
    """With the settings and the call of torchvision's."""

    __module__ = "torchvision.ops.deform_conv"

    def __init__(self) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.kernel_size, self.groups = IN, OUT, (3, 3), 1
        self.weight = nn.Parameter(torch.ones(OUT, IN, 3, 3))
        self.bias = nn.Parameter(torch.ones(OUT))

    def forward(self, x: Any, offset: Any, mask: Any = None) -> Any:
        given = torch.zeros(x.shape[0], 1, device=x.device) if mask is None else mask
        return OPS.deform_conv2d(x, self.weight, offset, given, self.bias, 1, 1, 1, 1, 1, 1, 1, 1, mask is not None)


class Net(nn.Module):
    """A deformable convolution, and a linear layer on three regions of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, IN, 3, padding=1, bias=False)
        self.offset = nn.Conv2d(IN, 18, 3, padding=1, bias=False)
        self.mask = nn.Conv2d(IN, 9, 3, padding=1, bias=False)
        self.deformed = DeformConv2d()
        self.head = nn.Linear(OUT * 4, 5, bias=False)
        self.register_buffer("regions", torch.tensor([[0.0, 0, 0, 6, 6], [0, 1, 2, 5, 7], [1, 0, 0, 3, 3]]))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = self.deformed(x, self.offset(x), self.mask(x))
        return self.head(OPS.roi_align(x, self.regions, 1.0, 2, 2, 2, True).flatten(1))


class Suppressed(Net):
    """Which of its regions are left depends on values."""

    def forward(self, x: Any) -> Any:
        kept = OPS.nms(self.regions[:, 1:], self.regions[:, 1], 0.5)
        return super().forward(x) + kept.numel()


def x() -> Any:
    return torch.ones(B, 3, SIZE, SIZE)


def test_every_counter_of_a_call_is_explained() -> None:
    result = reconcile.run(torch=Net(), inputs=x(), counters=COUNTERS, convention="all").result
    (trace,) = result.traces
    assert (trace.device, trace.reason, trace.unknown) == ("cpu", "", ())
    assert trace.totals["matmul"] == 2 * (STEM + OFFSET + MASK + DEFORMED + HEAD)
    assert {ledger.counter: ledger.reason for ledger in result.ledgers if ledger.state is not State.EXPLAINED} == {}
    assert [(s.source, r.layer, r.reason) for s in result.statements for r in s.residuals] == []


def test_each_gradient_of_a_deformable_convolution_has_its_phase() -> None:
    run = reconcile.run(torch=Net(), inputs=x(), counters=("flop_counter",), pass_="training")
    assert [(s.source, r.layer, r.reason) for s in run.result.statements for r in s.residuals] == []
    columns = ["forward", "input-gradient", "weight-gradient"]
    phases = {layer: [2 * n for n in asked] for layer, asked in GRADIENTS.items()}
    assert {row["layer"]: [row[name] for name in columns] for _, row in run.phases.iterrows() if row["layer"]} == phases


def test_ptflops_counts_the_products_and_its_own_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ptflops")
    hooks = importlib.import_module("ptflops.pytorch_ops")
    monkeypatch.setitem(hooks.MODULES_MAPPING, DeformConv2d, hooks.deformable_conv_flops_counter_hook)
    result = reconcile.run(torch=Net(), inputs=x(), counters=("ptflops@pytorch",)).result
    (statement,) = result.statements
    assert [(r.layer, r.reason) for r in statement.residuals] == []
    extra = PLACES * 9 * 25 + PLACES * OUT
    counted = STEM + OFFSET + MASK + DEFORMED + extra + HEAD
    average = counted - int(counted / B)
    assert statement.by_cause() == {Cause.OUTSIDE_CONVENTION: -2 * extra, Cause.AVERAGED_OVER_BATCH: 2 * average}


def test_a_model_that_needs_values_says_so_on_meta() -> None:
    result = reconcile.run(torch=Suppressed(), inputs=x(), counters=COUNTERS, device="meta").result
    reason = "tensors on meta have no values, and this model needs values: make it and run it on the CPU (--device cpu)"
    assert {ledger.counter: (ledger.state, ledger.reason) for ledger in result.ledgers} == dict.fromkeys(
        COUNTERS, (State.NOT_COMPARABLE, reason)
    )
    (trace,) = result.traces
    assert (trace.device, trace.totals["matmul"]) == ("cpu", 2 * (STEM + OFFSET + MASK + DEFORMED + HEAD))


def widths_by_values() -> Any:
    """As torchvision makes a RegNet: the widths of its layers come out of a tensor."""
    first, second = torch.arange(3, 9, 3).tolist()
    return nn.Linear(first, second, bias=False), torch.ones(5, first)


def test_a_model_that_takes_values_to_make_still_runs_on_meta() -> None:
    result = reconcile.run(torch=widths_by_values, device="meta").result
    assert {ledger.counter: (ledger.state, ledger.reason) for ledger in result.ledgers} == dict.fromkeys(
        ("thop", "fvcore", "flop_counter"), (State.EQUAL, "")
    )
    (trace,) = result.traces
    assert (trace.device, trace.totals["matmul"]) == ("meta", 2 * 5 * 3 * 6)


def not_at_all() -> Any:
    raise ValueError(torch.arange(2).tolist())


def test_a_factory_that_fails_everywhere_is_refused_for_the_cpu() -> None:
    with pytest.raises(UsageError, match=r"raised ValueError: \[0, 1\]"):
        reconcile.run(torch=not_at_all, device="meta")


NEEDS_VALUES = {
    "a number": lambda t: t.sum().item(),
    "a branch": lambda t: t if t.sum() else -t,
    "a list": lambda t: t.tolist(),
    "an array": lambda t: t.numpy(),
    "places": lambda t: t.nonzero(),
    "a choice by a mask": lambda t: t[t > 0],
    "masked_select": lambda t: torch.masked_select(t, t > 0),
    "unique": lambda t: torch.unique(t),
    "repeats": lambda t: torch.repeat_interleave(t.long()),
}


@pytest.mark.parametrize("name", NEEDS_VALUES)
def test_an_error_for_want_of_values_is_recognised(name: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)) as error:
        NEEDS_VALUES[name](torch.zeros(3, device="meta"))
    assert reason_of(error.value, ()) == NO_VALUES.reason
