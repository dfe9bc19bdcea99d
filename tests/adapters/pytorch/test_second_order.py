"""Gradients of gradients: a product is a weight gradient if it gives a parameter's gradient, whichever pass it is in.

``m`` is a product of the forward pass, B rows from one width to the next. A gradient is m again with respect to the input, and
again with respect to the weight; each of these is a product of a gradient and a weight or an input, so has two gradients itself.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import reconcile
from reconcile.adapters.pytorch import training
from reconcile.core.records import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from tests.adapters.by_phase import macs
from tests.adapters.counters.small_nets import Does
from tests.adapters.pytorch.training_models import Model

ROWS, FROM, WIDE = 8, 2, 12
A, B, C = ROWS * FROM * WIDE, ROWS * WIDE * WIDE, ROWS * WIDE
"""m of each of three layers."""
F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FROM, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE), nn.Tanh(), nn.Linear(WIDE, 1))


def slope(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(out.sum(), x, create_graph=True)[0]


LEAVES = {
    "given": lambda x: x,
    "in place": lambda x: x.requires_grad_(),
    "detached": lambda x: x.detach().requires_grad_(),
    "cloned": lambda x: x.clone().requires_grad_(),
    "computed": lambda x: (x * 2).requires_grad_(),
}


def pinn(leaf=LEAVES["detached"]) -> Does:
    """d2u/dx2 of a network u."""

    def run(m, x):
        x = leaf(x)
        return slope(slope(m.u(x), x)[:, 0], x)[:, 0]

    return Does(run, u=mlp())


PINN = {
    ("u.0", F): A,
    ("u.2", F): B,
    ("u.4", F): C,
    # first slope: each layer once. Second: through the products of the first (not the last layer's, whose other factor is a
    # constant), and through tanh' down the first two layers again
    ("u.0", I): A + 2 * A + 2 * A,  # the loss: the second slope's two products, of which one has a constant, and x
    ("u.2", I): B + 2 * B + 4 * B,  # the same and the first slope's
    ("u.4", I): C,
    ("u.0", W): 2 * A
    + A,  # of the second slope's products, and of the forward pass; the first slope itself is not used
    ("u.2", W): 2 * B + B + B,
    ("u.4", W): C,  # of the first slope's; the loss does not depend on u
}


@pytest.mark.parametrize("name", LEAVES)
def test_second_derivatives_in_forward(name: str) -> None:
    net, x = pinn(LEAVES[name]), torch.rand(ROWS, FROM, requires_grad=name == "given")
    with reconcile.count(net) as step:
        net(x).square().mean().backward()
    assert macs(step.collected.traces[0].ops) == PINN
    model = Model(lambda: pinn(LEAVES[name]), ROWS, FROM, device="cpu")
    inputs = model.example("cpu")[0].requires_grad_(name == "given")
    model.example = lambda _device: [inputs.detach().requires_grad_(name == "given")]
    assert macs(training.record(model, "cpu").ops.values()) == PINN


def test_second_derivatives_on_meta() -> None:
    assert macs(training.record(Model(pinn, ROWS, FROM), "meta").ops.values()) == PINN


def penalty(net: nn.Module, x: torch.Tensor) -> None:
    out = net(x)
    (out.mean() + (slope(out, x).norm(dim=1) - 1).square().mean()).backward()


def test_a_gradient_penalty() -> None:
    """A product of the slope has a weight gradient, and another but in the last layer, where the other factor is a constant."""
    net, x = mlp(), torch.rand(ROWS, FROM, requires_grad=True)
    with reconcile.count(net) as step:
        penalty(net, x)
    weights = {(layer, W): 2 * m for layer, m in (("0", A), ("2", B), ("4", C))}
    forward = {(layer, F): m for layer, m in (("0", A), ("2", B), ("4", C))}
    inputs = {("0", I): 3 * A, ("2", I): 3 * B, ("4", I): 2 * C}
    assert macs(step.collected.traces[0].ops) == {**forward, **weights, **inputs}


def test_a_weight_that_is_computed_from_parameters() -> None:
    left, right = nn.Parameter(torch.rand(WIDE, 3)), nn.Parameter(torch.rand(3, FROM))
    run = lambda m, x: m.last(torch.tanh(x @ (m.left @ m.right).t()))  # noqa: E731
    net, x = Does(run, left=left, right=right, last=nn.Linear(WIDE, 1)), torch.rand(ROWS, FROM, requires_grad=True)
    with reconcile.count(net) as step:
        slope(net(x), x).square().sum().backward()
    weight = WIDE * 3 * FROM
    assert macs(step.collected.traces[0].ops) == {
        ("", F): weight + A, ("last", F): C, ("", I): A + 2 * A, ("last", I): C, ("", W): 2 * A + 2 * weight,
        ("last", W): C,
    }  # fmt: skip


def further(m, x):
    """A slope with a layer of the model's own after it."""
    x = x.detach().requires_grad_()
    return slope(m.u(x), x) @ m.own


def test_what_comes_after_a_pass_is_in_the_module_that_runs() -> None:
    u = nn.Sequential(nn.Linear(FROM, WIDE), nn.Tanh(), nn.Linear(WIDE, 1))
    model = Model(lambda: Does(further, u=u, own=nn.Parameter(torch.rand(FROM, 5))), ROWS, FROM)
    found, own = macs(training.record(model, "meta").ops.values()), ROWS * FROM * 5
    assert found == {
        ("", F): own, ("", I): own, ("", W): own,
        ("u.0", F): A, ("u.0", I): 3 * A, ("u.0", W): 2 * A,
        ("u.2", F): C, ("u.2", I): C, ("u.2", W): C,
    }  # fmt: skip


def test_the_input_of_a_step_is_no_weight() -> None:
    model = Model(mlp, ROWS, FROM, device="cpu")
    model.example = lambda _device: [torch.rand(ROWS, FROM, requires_grad=True)]
    found = macs(training.record(model, "cpu").ops.values())
    assert {key: m for key, m in found.items() if key[1] != F} == {
        (layer, phase): m for layer, m in (("0", A), ("2", B), ("4", C)) for phase in (I, W)
    }


def attending() -> Does:
    """A force through attention, of which PyTorch makes the products one by one because of the dropout."""

    def run(m, x):
        x = x.detach().requires_grad_()
        h = m.line(x)
        return slope(nn.functional.scaled_dot_product_attention(h, h, h, dropout_p=0.1), x)

    return Does(run, line=nn.Linear(4, 4))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_call_that_is_one_op_is_recorded_op_by_op_where_its_gradient_has_one(device: str) -> None:
    net, x = attending(), torch.rand(2, 3, 5, 4)
    with reconcile.count(net) as step:
        net(x).square().mean().backward()
    found = macs(training.record(Model(attending, 2, 3, 5, 4, device=device), device).ops.values())
    assert found == macs(step.collected.traces[0].ops)


PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)


class Poison(TorchDispatchMode):
    """Makes the result of one product of a backward pass nan, and sees which later products get it."""

    def __init__(self, poisoned: int) -> None:
        super().__init__()
        self.poisoned, self.macs, self.passed_on = poisoned, [], False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        gets = func in PRODUCTS and any(t.isnan().any() for t in args)
        out = func(*args, **(kwargs or {}))
        self.passed_on |= gets
        if func in PRODUCTS and torch._C._current_autograd_node() is not None:
            self.macs.append(out.numel() * args[-2].shape[1])
            if len(self.macs) == self.poisoned:
                out.fill_(torch.nan)
        return out


def by_poison(step) -> dict[str, int]:
    """Multiply-adds by phase: a weight gradient is what reaches a parameter's gradient, the input's not, and no other product."""
    found, number = {I: 0, W: 0}, 1
    while True:
        net, x = mlp(), torch.rand(ROWS, FROM, requires_grad=True)
        with Poison(number) as poison:
            step(net, x)
        if len(poison.macs) < number:
            return found
        reached = [t.grad is not None and bool(t.grad.isnan().any()) for t in (x, *net.parameters())]
        found[W if any(reached[1:]) and not (reached[0] or poison.passed_on) else I] += poison.macs[number - 1]
        number += 1


def third(net: nn.Module, x: torch.Tensor) -> None:
    slope(slope(slope(net(x), x)[:, 0], x)[:, 1], x).square().sum().backward()


def twice(net: nn.Module, x: torch.Tensor) -> None:
    penalty(net, x)
    net(x.detach()).square().mean().backward()


@pytest.mark.parametrize("step", [penalty, third, twice])
def test_phases_are_those_of_what_each_product_reaches(step) -> None:
    net, x = mlp(), torch.rand(ROWS, FROM, requires_grad=True)
    with reconcile.count(net) as counted:
        step(net, x)
    found = macs(counted.collected.traces[0].ops)
    assert {p: sum(m for (_, phase), m in found.items() if phase == p) for p in (I, W)} == by_poison(step)
