"""Counts of a training run: what is counted once and multiplied is what counting every step gives.

The network has A inputs, B hidden values and C results. A batch of n runs 2n(AB + BC) FLOPs of products forward, as many for the
gradients of the weights, and 2nBC for the hidden values' gradient: nothing needs the input's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import _len_torch_dispatch_stack

import reconcile
from reconcile.core.errors import UsageError
from reconcile.products.steps.pytorch.calls import describe_tensors
from reconcile.products.steps.training_run import COMPUTES_BEFORE_CALL, MODEL_NOT_CALLED, TrainingRun

pytestmark = pytest.mark.frameworks

A, B, C = 4, 6, 2


def step(n: int) -> int:
    return 2 * n * (2 * (A * B + B * C) + B * C)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(A, B), nn.Linear(B, C)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x).relu())


def micro(net: nn.Module, n: int) -> None:
    net(torch.ones(n, A)).square().mean().backward()


def momentum(net: nn.Module) -> torch.optim.Optimizer:
    """Its first step makes a copy where the others multiply."""
    return torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)


def trained(
    running: TrainingRun, net: nn.Module, steps: Sequence[Sequence[int]], optimizer: Any = None, told: bool = False
) -> TrainingRun:
    """Train by these steps of micro-batches; with ``told``, it is known before which one is the last."""
    optimizer = optimizer or momentum(net)
    for sizes in steps:
        for i, n in enumerate(sizes):
            last = i == len(sizes) - 1
            running.begin((lambda last=last: last) if told else None)  # type: ignore[misc]
            micro(net, n)
            if last:
                optimizer.step()
                optimizer.zero_grad()
            running.end()
    return running


def attached(net: nn.Module, **options: Any) -> TrainingRun:
    running = TrainingRun(**options)
    running.attach(net)
    return running


def test_the_last_step_has_the_utilisation_of_a_device() -> None:
    net = Net()
    running = trained(attached(net, device="A100 SXM4 80GB"), net, [[3]] * 3)
    assert isinstance(running.last, reconcile.Step)
    assert running.last.metrics(seconds=1.0)["mfu"] == step(3) / (312 * 10**12)
    with pytest.raises(UsageError, match="is not in the table of peaks"):
        TrainingRun(device="H1000")


def test_one_shape_by_its_closed_form() -> None:
    net = Net()
    running = trained(attached(net), net, [[3]] * 7)
    assert (running.flops, running.withheld) == (7 * step(3), "")
    assert [(kind.calls, kind.metrics["flops"]) for kind in running.kinds if kind.metrics] == [
        (1, step(3)),
        (6, step(3)),
    ]
    assert running.metrics()["flops/forward"] == 7 * 2 * 3 * (A * B + B * C)
    assert running.last is not None
    assert running.last.metrics()["flops"] == step(3)


def test_the_table_has_a_row_per_kind() -> None:
    pytest.importorskip("pandas")
    net = Net()
    frame = trained(attached(net), net, [[3], [5], [3], [3]]).steps
    assert frame["calls"].tolist() == [1, 1, 2]
    assert frame["FLOP"].tolist() == [step(3), step(5), 2 * step(3)]
    assert frame["shapes"].tolist()[1:] == [f"float32 ({n}, {A}); optimizer step" for n in (5, 3)]


@settings(max_examples=4, deadline=None)
@given(st.lists(st.lists(st.integers(1, 2), min_size=1, max_size=3), min_size=1, max_size=4))
@example([[1, 1, 1], [2, 1], [1, 1, 2], [1, 1, 1]])
def test_the_total_is_that_of_counting_every_step(steps: list[list[int]]) -> None:
    """Of whole steps, under a convention that sees an optimizer make its state, and gradients added up."""
    net = Net()
    optimizer, total = momentum(net), 0
    for sizes in steps:
        with reconcile.count(net, convention="all") as counted:
            for n in sizes:
                micro(net, n)
            optimizer.step()
            optimizer.zero_grad()
        total += int(counted.metrics()["flops"])
    running = trained(attached(net, convention="all"), net, steps, told=True)
    assert (running.flops, running.withheld) == (total, "")


def test_an_unexpected_step_is_never_too_small() -> None:
    net = Net()
    running = trained(attached(net), net, [[3, 2], [3, 2]])
    assert running.flops == 2 * (step(3) + step(2))
    trained(running, net, [[3]])  # a step after one micro-batch, where there were two
    assert running.flops is None
    assert "steps of one kind" in running.withheld
    assert running.metrics() == {}
    trained(running, net, [[3]])
    assert running.flops == 2 * (step(3) + step(2)) + 2 * step(3)


def test_frozen_weights_are_another_kind() -> None:
    net = Net()
    running, optimizer = attached(net), momentum(net)
    trained(running, net, [[3]] * 2, optimizer)
    net.one.requires_grad_(False)
    trained(running, net, [[3]] * 2, optimizer)
    assert running.flops == 2 * step(3) + 2 * 2 * 3 * (A * B + 2 * B * C)


class Growing(Net):
    """What it runs depends on how often it was called."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(x) if self.calls < 5 else super().forward(x) + super().forward(x)


def test_work_that_shapes_do_not_tell_is_found() -> None:
    net = Growing()
    running = trained(attached(net, check_every=2), net, [[3]] * 9)
    assert running.flops is None
    assert "two steps of the same shapes are not the same work" in running.withheld


def test_work_before_the_call_withholds_the_total() -> None:
    net = Net()
    running = attached(net)
    running.begin()
    x = torch.ones(3, A) @ torch.ones(A, A)
    net(x).sum().backward()
    running.end()
    assert running.withheld == COMPUTES_BEFORE_CALL % (2 * 3 * A * A)


def test_a_step_without_a_call_withholds_the_total() -> None:
    net = Net()
    running = attached(net)
    running.begin()
    net.two(net.one(torch.ones(3, A))).sum().backward()
    running.end()
    assert (running.flops, running.withheld) == (None, MODEL_NOT_CALLED)


def test_calls_of_inner_modules_are_followed() -> None:
    net = Net()
    running = TrainingRun()
    running.attach(net, inner=True)
    optimizer = momentum(net)
    for n in (3, 3, 5, 3):
        running.begin(lambda: True)
        net.two(net.one(torch.ones(n, A)).relu()).square().mean().backward()
        optimizer.step()
        running.end()
    assert running.flops == 3 * step(3) + step(5)


class Leaving(Net):
    """It multiplies in numpy, where nothing is seen."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.from_numpy(x.numpy() @ x.numpy().T @ x.numpy()))


def test_a_step_that_cannot_be_counted_says_why() -> None:
    net = Leaving()
    running = trained(attached(net), net, [[3]] * 2)
    assert running.flops is None
    assert running.withheld.startswith("No number to publish")


def test_a_step_that_fails_leaves_nothing_on() -> None:
    net = Net()
    running = attached(net)
    running.begin()
    with pytest.raises(RuntimeError) as raised:
        micro(net, 3) or net(torch.ones(3, A + 1))
    assert _len_torch_dispatch_stack() == 1
    running.close(raised.value)
    assert (running.flops, running.withheld) == (None, "a step ended early (RuntimeError).")
    assert (_len_torch_dispatch_stack(), len(net._forward_pre_hooks)) == (0, 0)


def test_a_known_step_runs_bare_and_weights_are_the_same() -> None:
    weights: list[Any] = []
    modes: list[int]
    for running, expected in ((TrainingRun(), [1, 1, 0, 0]), (Silent(), [0] * 4)):
        torch.manual_seed(0)
        net, modes = Watched(), []
        net.modes = modes
        running.attach(net)
        trained(running, net, [[3]] * 4)
        running.close()
        assert modes == expected
        weights.append([w.detach().clone() for w in net.parameters()])
    assert [n for n, (a, b) in enumerate(zip(*weights, strict=True)) if not torch.equal(a, b)] == []


class Watched(Net):
    """It notes how many modes are on in each call."""

    modes: list[int]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.modes.append(_len_torch_dispatch_stack())
        return super().forward(x)


class Silent(TrainingRun):
    """Counts nothing."""

    def begin(self, *_: Any, **__: Any) -> None: ...
    def end(self, *_: Any, **__: Any) -> None: ...


@pytest.mark.filterwarnings("ignore:Using `torch.compile")
def test_a_compiled_model_is_counted_as_written() -> None:
    net = Net()
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    running, optimizer = attached(net), momentum(net)
    for n in (3, 3, 3, 5):
        running.begin()
        micro(compiled, n)
        optimizer.step()
        running.end()
    running.close()
    assert running.flops == 3 * step(3) + step(5)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([torch.ones(2, 3)], ["float32 (2, 3)"]),
        ({"x": torch.ones(2, dtype=torch.int64), "use_cache": False}, ["x int64 (2,)", "use_cache False"]),
        ([torch.ones(2, requires_grad=True), 0.5, None], ["float32 (2,) requires_grad"]),
        ({"names": ["a", "b"]}, ["names 2 of:"]),
    ],
)
def test_a_batch_is_described_by_its_shapes(value: Any, text: list[str]) -> None:
    assert list(describe_tensors(value)) == text
