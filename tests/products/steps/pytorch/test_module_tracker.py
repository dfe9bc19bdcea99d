"""Where FlopCounterMode by itself raises in a step, it is credited with no number; elsewhere its number is the one that it gives.

Each step runs three times: bare, in FlopCounterMode as its users run it, and in ``reconcile.count``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.functional import hvp, jacobian
from torch.utils.checkpoint import checkpoint

from reconcile.core.causes import State
from tests.adapters.counters.small_nets import Does
from tests.products.steps import nets
from tests.products.steps.nets import IN, OUT, ROWS, by_hand, counted, rows


def energy(m: Any, x: torch.Tensor) -> torch.Tensor:
    """It takes the gradient of its own result, with respect to what it gives its layers."""
    found = m.net(x).sum()
    return found + torch.autograd.grad(found, x, create_graph=True)[0].square().sum()


def lent() -> Does:
    """It gives a module a view of its weight."""
    return Does(lambda m, x: x @ m.same(m.weight.T), weight=nn.Parameter(torch.ones(OUT, IN)), same=nn.Identity())


def leaf() -> torch.Tensor:
    return rows().requires_grad_()


def penalty(net: nn.Module, x: torch.Tensor) -> None:
    """The gradient penalty of WGAN-GP."""
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    (slope.norm(2, 1) - 1).square().mean().backward()


def without_gradients(net: nn.Module) -> None:
    with torch.no_grad():
        net(rows())


def returned(net: nn.Module) -> None:
    """A module that returns what it is given, by name, so that it is no input of the tracker's."""
    x = leaf()
    torch.autograd.grad(net(nn.Identity()(input=x) * 1).sum(), x)


def left_unused(net: nn.Module) -> None:
    x, other = leaf(), leaf()
    net(x)
    torch.autograd.grad(other.sum(), [x, other], allow_unused=True)


def raising_hook(net: nn.Module) -> None:
    handle = net[0].register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        net(rows())
    handle.remove()
    net(rows()).sum().backward()


def again(net: nn.Module, reentrant: bool) -> None:
    checkpoint(net, leaf(), use_reentrant=reentrant).sum().backward()


RAISES: dict[str, tuple[Callable[[], nn.Module], Callable[[Any], Any]]] = {
    "a gradient penalty": (nets.mlp, lambda net: penalty(net, leaf())),
    "autograd.grad within forward": (lambda: Does(energy, net=nets.mlp()), lambda net: net(leaf()).backward()),
    "jacobian": (nets.mlp, lambda net: jacobian(net, rows())),
    "hvp": (nets.mlp, lambda net: hvp(lambda x: net(x).sum(), rows(), rows())),
    "torch.func.grad": (nets.mlp, lambda net: torch.func.grad(lambda x: net(x).sum())(rows())),
    "torch.func.jacrev": (nets.mlp, lambda net: torch.func.jacrev(net)(rows())),
    "a leaf that is returned": (nets.mlp, returned),
    "a view of a weight without gradients": (lent, without_gradients),
}
GIVES: dict[str, tuple[Callable[[], nn.Module], Callable[[Any], Any]]] = {
    "a penalty on what is no leaf": (nets.mlp, lambda net: penalty(net, leaf() * 1)),
    "forward called past hooks": (
        nets.mlp,
        lambda net: torch.autograd.grad(nn.Linear.forward(net[0], x := leaf()).sum(), x),
    ),
    "saliency by backward": (nets.mlp, lambda net: net(leaf()).sum().backward()),
    "backward to one leaf": (nets.mlp, lambda net: net(x := leaf()).sum().backward(inputs=[x])),
    "gradients of weights": (nets.mlp, lambda net: torch.autograd.grad(net(leaf()).sum(), [*net.parameters()])),
    "a leaf that nothing reaches": (nets.mlp, left_unused),
    "a leaf without gradients": (nets.mlp, without_gradients),
    "a view of a weight with gradients": (lent, lambda net: net(rows()).sum().backward()),
    "a checkpoint": (nets.mlp, lambda net: again(net, False)),
    "a reentrant checkpoint": (nets.mlp, lambda net: again(net, True)),
    "what is compiled": (nets.mlp, lambda net: torch.compile(net, backend="eager")(rows()).sum().backward()),
    "DataParallel": (nets.mlp, lambda net: nn.DataParallel(net)(rows()).sum().backward()),
    "a hook that raises": (nets.mlp, raising_hook),
}


VARIANTS = {
    "hvp", "torch.func.jacrev", "saliency by backward", "backward to one leaf", "gradients of weights", "a checkpoint",
    "DataParallel",
}  # fmt: skip
"""Steps that another one stands for in the fast tests."""


def table(steps: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in VARIANTS)) for name in steps]


@pytest.mark.parametrize("step", table(RAISES))
def test_where_it_raises_it_has_no_number(step: str) -> None:
    make, run = RAISES[step]
    run(make())
    net = make()
    with pytest.raises((RuntimeError, AssertionError)):
        by_hand(lambda: run(net))
    found = counted(lambda: run(net), net, counters=["flop_counter"])
    (ledger,) = found.result.ledgers
    assert (ledger.state, ledger.total) == (State.NOT_COMPARABLE, None)
    assert "FlopCounterMode raises in this step" in ledger.reason
    assert found.metrics()["flops"] > 0  # what ran is known without it
    assert "flop_counter" not in found.cite()


@pytest.mark.parametrize("step", table(GIVES))
@pytest.mark.filterwarnings("ignore:Using `torch.compile:UserWarning")
def test_where_it_gives_a_number_that_is_it(step: str) -> None:
    make, run = GIVES[step]
    net = make()
    found = counted(lambda: run(net), net, counters=["flop_counter"])
    assert found.result.ledgers[0].total == by_hand(lambda: run(net)), found.result.ledgers[0].reason


def test_the_work_of_a_gradient_penalty_is_told_without_it() -> None:
    """Forward; the slope's products; and of those the gradients with respect to weights and to what they read."""
    net = nn.Linear(IN, 1, bias=False)
    found = counted(lambda: penalty(net, leaf()), net)
    product = 2 * ROWS * IN  # each is one: the slope of a linear layer has no gradient with respect to its input
    assert found.metrics()["flops"] == 3 * product


def test_nothing_is_left_on_the_program() -> None:
    net, x = nets.mlp(), leaf()
    engine = torch.autograd._engine_run_backward
    counted(lambda: penalty(net, x), net)
    assert torch.autograd._engine_run_backward is engine
    assert not x._backward_hooks
    assert not torch.nn.modules.module._global_forward_hooks


def test_tensors_without_values_leave_it_out() -> None:
    from torch._subclasses import FakeTensorMode

    def run(net: nn.Module) -> None:
        net(rows()).sum().backward()
        with FakeTensorMode() as mode:
            mode.from_tensor(rows()) @ mode.from_tensor(rows().T)

    net = nets.mlp()
    found = counted(lambda: run(net), net, counters=["flop_counter"])
    (ledger,) = found.result.ledgers
    assert found.metrics()["flops"] == nets.MLP_STEP
    assert by_hand(lambda: run(net)) == nets.MLP_STEP + 2 * ROWS * ROWS * IN
    assert (ledger.state, ledger.total) == (State.NOT_COMPARABLE, None)
