"""A recorder never raises into a program: whatever it meets, the step runs as without it, and the number is withheld."""

from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import reconcile
from reconcile.adapters.pytorch.tracing.dispatched_calls import DispatchedCall, SharedRecords, Tally
from reconcile.adapters.pytorch.tracing.opened_kernels import OpenedKernel
from reconcile.adapters.pytorch.tracing.recorder import RECORDER
from reconcile.products.steps.pytorch.calls import describe_tensors
from reconcile.products.steps.pytorch.path import StepPath
from reconcile.products.steps.pytorch.recorder import StepRecorder
from reconcile.products.steps.pytorch.seal import StepSeal

WIDE, INNER = 4, 8
PARTS = (StepRecorder, StepPath, StepSeal, DispatchedCall, Tally, SharedRecords, OpenedKernel)
CANNOT_FAIL = {
    *("__init__", "__enter__", "__exit__", "__torch_dispatch__", "dispatch", "run_opened", "attempt", "fail"),
    *("release", "watch_leaving", "_should_skip_dynamo"),
}
"""What runs the program itself, what holds an error, and what sets attributes alone."""


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(WIDE, INNER), nn.Linear(INNER, WIDE)

    def forward(self, x: Any) -> Any:
        return self.last(self.first(x).relu())


class Checkpointed(Net):
    def forward(self, x: Any) -> Any:
        return self.last(twice(checkpoint(self.first, x, use_reentrant=False)))


@torch.library.custom_op("reconcile_never::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


twice.register_autograd(lambda _ctx, gradient: 2 * gradient)


def run_step() -> list[Any]:
    torch.manual_seed(0)
    net = Checkpointed()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.randn(3, WIDE)).square().mean().backward()
    optimizer.step()
    return [value for weight in net.parameters() for value in (weight.detach(), weight.grad)]


def methods_of(kind: type) -> list[str]:
    """Its methods and properties, without those of PyTorch and those that hold their errors themselves."""
    found = {
        name
        for each in kind.__mro__
        if each.__module__.startswith("reconcile.")
        for name, value in vars(each).items()
        if (inspect.isfunction(value) and not hasattr(value, "__wrapped__")) or isinstance(value, property)
    }
    return sorted((found - CANNOT_FAIL) | ({"__init__"} if kind in (DispatchedCall, OpenedKernel) else set()))


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_an_error_in_any_part_of_a_recorder_withholds_the_number_and_no_step(kind):
    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("planted")

    plain, failed = run_step(), []
    for name in methods_of(kind):
        is_property = isinstance(inspect.getattr_static(kind, name), property)
        with patch.object(kind, name, property(fail) if is_property else fail):
            with reconcile.count() as step:
                done = run_step()
            trace = step.context.trace()
        assert [one for one, other in zip(done, plain, strict=True) if not torch.equal(one, other)] == [], name
        if any(problem.op == RECORDER for problem in trace.problems):
            assert "planted" in trace.problems[0].reason, name
            assert [each for each in step.context.ledgers() if "planted" not in str(each)] == [], name
            failed.append(name)
    assert failed


class Unhashable(nn.Linear):
    __hash__ = None


def test_a_module_that_cannot_be_named_is_called():
    layer, x = Unhashable(WIDE, INNER), torch.randn(3, WIDE)
    with reconcile.count(layer) as step:
        out = layer(x)
    assert torch.equal(out, layer(x))
    assert [problem.op for problem in step.context.trace().problems][:1] == [RECORDER]


def nested(layout: Any) -> Any:
    """Two sequences, of 3 and of 5."""
    return torch.nested.nested_tensor([torch.randn(3, WIDE), torch.randn(5, WIDE)], layout=layout)


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_nested_tensors_as_inputs_count_all_their_rows(layout):
    forward = 2 * (3 + 5) * (WIDE * INNER + INNER * WIDE)
    net, x = Net(), nested(layout)
    with reconcile.count(net) as step:
        out = net(x)
    assert out.is_nested
    assert step.result.traces[0].totals["matmul"] == forward
    run = reconcile.run(torch=net, inputs=x, counters=["flop_counter"])
    assert run.result.traces[0].totals["matmul"] == forward
    with reconcile.count(net) as step:
        sum(row.sum() for row in net(x).unbind()).backward()
    if layout is torch.strided:  # gradients are an operator without a formula
        assert {item.op for item in step.result.traces[0].unknown} >= {"aten.linear_backward"}
        return
    # of the first layer, whose input needs no gradient, the weight's alone
    assert step.result.traces[0].totals["matmul"] == forward + 3 * forward // 2


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype")
def test_a_batch_that_cannot_be_described_is_like_no_other():
    class Raises:
        @property
        def shape(self) -> Any:
            raise ZeroDivisionError

    assert list(describe_tensors(Raises())) != list(describe_tensors(Raises()))
    for layout in (torch.jagged, torch.strided):
        assert list(describe_tensors([nested(layout)])) == list(describe_tensors([nested(layout)]))
