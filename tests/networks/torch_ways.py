"""Ways of using PyTorch's blocks: sharing, residuals, checkpoints, gradients in a forward pass, hooks, frozen weights, vmap,
wrapper subclasses, aliases, and control flow by values."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

from . import torch_attention, torch_layers, torch_values
from .block import Block, Cost, Makes, Shape, along, around, chain, product, repeated, residual
from .torch_layers import Apply

F = nn.functional
make = MAKES = Makes()
PLAIN = [*torch_layers.MAKES, *torch_attention.MAKES, *torch_values.MAKES]
SURE = [torch_layers.linear, torch_layers.written, torch_layers.convolution, torch_layers.recurrent, torch_layers.pointwise,
        torch_attention.attention, torch_attention.multi_head, torch_layers.with_itself]  # fmt: skip


def sequence(blocks: list[Block]) -> nn.Module:
    return nn.Sequential(*(b.part for b in blocks))


@make
def added(rng: Any, shape: Shape) -> Block | None:
    return residual(rng, PLAIN, shape, lambda blocks: Apply(lambda m, x: x + m.inner(x), inner=sequence(blocks)))


@make
def shared(rng: Any, shape: Shape) -> Block | None:
    """One linear layer twice."""
    width = shape[-1]
    layer = nn.Linear(width, width, bias=rng.random() < 0.5)
    part = Apply(lambda m, x: m.layer(m.layer(x).tanh()), layer=layer)
    return Block("shared", part, shape, repeated(prod(shape) * width), True)


@make
def checkpointed(rng: Any, shape: Shape) -> Block | None:
    """All of it is computed again: what comes last keeps its output for the gradient."""
    blocks = chain(rng, SURE, shape, 2)
    if not blocks:
        return None
    again = rng.random() < 0.3
    inner = Apply(lambda m, x: m.inner(x).tanh(), inner=sequence(blocks))
    part = Apply(lambda m, x: checkpoint(m.inner, x, use_reentrant=again), inner=inner)

    def form(needs: bool, trained: bool) -> Cost:
        """A reentrant one begins a backward pass of its own, for all weights, and only where its input needs a gradient."""
        plain, gives = along(blocks, needs, trained or again)
        if not gives or (again and not needs):
            return Cost(plain.forward)
        return plain + Cost(again=plain.forward)

    made = around(f"checkpoint{'_reentrant' if again else ''}", part, blocks, form=form)
    return replace(made, trained=made.trained and not again)


@make
def frozen(rng: Any, shape: Shape) -> Block | None:
    blocks = chain(rng, PLAIN, shape, 2)
    if not blocks:
        return None
    made = around("frozen", sequence(blocks).requires_grad_(False), blocks, trained=False)
    return replace(made, form=lambda n, _: along(blocks, n, False)[0])


@make
def without(rng: Any, shape: Shape) -> Block | None:
    """Under no_grad: no gradient comes through."""
    blocks = chain(rng, SURE, shape, 1)
    if not blocks:
        return None

    def run(m: Any, x: Any) -> Any:
        with torch.no_grad():
            return m.inner(x)

    forward = along(blocks, False, False)[0]
    return around("no_grad", Apply(run, inner=sequence(blocks)), blocks, trained=False, passes=False,
                  form=lambda n, t: forward)  # fmt: skip


@make
def hooked(rng: Any, shape: Shape) -> Block | None:
    """A forward hook multiplies what its layer gives by a constant, or by the layer's own weight."""
    width, own = shape[-1], rng.random() < 0.5
    layer = nn.Linear(width, width, bias=False)
    constant = torch.randn(width, width)

    def hook(module: Any, given: Any, output: Any) -> Any:
        return output @ (module.weight if own else constant)

    layer.register_forward_hook(hook)
    macs = prod(shape) * width

    def form(needs: bool, trained: bool) -> Cost:
        return product(macs, needs, trained) + product(macs, needs or trained, trained and own)

    return Block(f"hooked{'_own' if own else ''}", layer, shape, form, True)


class Low(nn.Module):
    """A weight of a product of two."""

    def __init__(self, rows: int, rank: int, columns: int) -> None:
        super().__init__()
        self.left, self.right = nn.Parameter(torch.randn(rows, rank)), nn.Parameter(torch.randn(rank, columns))

    def forward(self, given: Any) -> Any:
        return given + self.left @ self.right


@make
def parametrized(rng: Any, shape: Shape) -> Block | None:
    """LoRA by a parametrization: the weight itself is frozen, its change is a product."""
    width, out, rank = shape[-1], rng.randint(1, 6), rng.randint(1, 3)
    layer = nn.Linear(width, out, bias=False).requires_grad_(False)
    parametrize.register_parametrization(layer, "weight", Low(out, rank, width))

    def form(needs: bool, trained: bool) -> Cost:
        return product(out * rank * width, 0, 2 * trained) + product(prod(shape) * out, needs, trained)

    return Block("parametrized", layer, (*shape[:-1], out), form, True)


@make
def gradient(rng: Any, shape: Shape) -> Block | None:
    """The gradient of a part by its input, within the forward pass."""
    blocks = chain(rng, SURE, shape, 2)
    if not blocks:
        return None
    functional = rng.random() < 0.25
    if functional and any("dropout" in b.name for b in blocks):
        return None

    def run(m: Any, x: Any) -> Any:
        if functional:
            return torch.func.grad(lambda value: m.inner(value).square().sum())(x)
        with torch.enable_grad():
            given = x.detach().requires_grad_()
            (found,) = torch.autograd.grad(m.inner(given).square().sum(), given)
        return found

    inner = along(blocks, True, False)[0]
    if functional:  # the gradient of oneDNN's LSTM that has a gradient itself computes the gates again (mkldnn/RNN.cpp)
        inner += Cost(again=sum(block.cost(True).forward for block in blocks if block.name.startswith("lstm_x")))
    return Block(
        f"{'func_' if functional else ''}gradient({', '.join(b.name for b in blocks)})", Apply(run, inner=sequence(blocks)),
        shape, lambda n, t: Cost(inner.forward + inner.backward), steps=False, passes=False,
    )  # fmt: skip


@make
def mapped(rng: Any, shape: Shape) -> Block | None:
    """vmap over the first size."""
    if len(shape) < 3:
        return None
    width, itself = shape[-1], len(shape) == 3 and rng.random() < 0.5
    if itself:
        macs, after = prod(shape) * shape[1], (shape[0], shape[1], shape[1])
        part = Apply(lambda m, x: torch.vmap(lambda row: row @ row.mT)(x))
        return Block("vmap_self", part, after, lambda n, t: product(macs, 2 * n))
    out = rng.randint(1, 5)
    macs = prod(shape) * out
    part = Apply(lambda m, x: torch.vmap(lambda row: F.linear(row, m.weights[0]))(x), (out, width))
    return Block("vmap", part, (*shape[:-1], out), lambda n, t: product(macs, n, t), True)


class Doubles(torch.autograd.Function):
    """A product whose own backward pass multiplies once more than it must."""

    @staticmethod
    def forward(ctx: Any, given: Any, weight: Any) -> Any:
        ctx.save_for_backward(given, weight)
        return given @ weight

    @staticmethod
    def backward(ctx: Any, *back: Any) -> Any:
        given, weight = ctx.saved_tensors
        wide = back[0] @ weight.t()
        return wide + back[0] @ weight.t(), (given.flatten(0, -2).t() @ back[0].flatten(0, -2))


@make
def own_backward(rng: Any, shape: Shape) -> Block | None:
    out = rng.randint(1, 5)
    macs = prod(shape) * out

    def form(needs: bool, trained: bool) -> Cost:
        return Cost(macs, 2 * macs, macs) if needs or trained else Cost(macs)

    part = Apply(lambda m, x: Doubles.apply(x, m.weights[0]), (shape[-1], out))
    return Block("own_backward", part, (*shape[:-1], out), form, True)


class Rank(torch.Tensor):
    """A constant matrix of low rank that keeps its factors: what runs are two thin products."""

    @staticmethod
    def __new__(cls, left: Any, right: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, (left.shape[0], right.shape[1]), dtype=left.dtype)

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(self.left.clone(), self.right.clone())

    def __repr__(self) -> str:
        return "Rank()"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.mm.default:
            return (args[0] @ args[1].left) @ args[1].right
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(args[0].left, args[0].right)
        raise NotImplementedError(func)


@make
def wrapped(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 2:
        return None
    (rows, width), out, rank = shape, rng.randint(2, 6), 1
    part = Apply(lambda m, x: torch.mm(x, m.matrix))
    part.matrix = Rank(torch.ones(width, rank), torch.ones(rank, out))
    macs = rows * rank * (width + out)
    return Block("wrapper", part, (rows, out), lambda n, t: Cost(macs), steps=False, passes=False)


@make
def aliased(rng: Any, shape: Shape) -> Block | None:
    """A part that is told the same tensor twice, or a view of it, and does less where it is the same."""
    width, same = shape[-1], rng.random() < 0.5

    def both(layer: Any, a: Any, b: Any) -> Any:
        return layer(a) if a is b else layer(a) + layer(b)

    part = Apply(lambda m, x: both(m.layer, x, x if same else x[:]), layer=nn.Linear(width, 3, bias=False))
    times = 1 if same else 2
    macs = prod(shape) * 3
    return Block(f"alias_{times}", part, (*shape[:-1], 3), lambda n, t: product(macs, n, t) * times, True)


@make
def by_value(rng: Any, shape: Shape) -> Block | None:
    """As many products as values of a tensor say: those of an array that are not NaN, and a little sum."""
    width, modulus = shape[-1], rng.randint(2, 4)
    times = prod(shape) % modulus + 1
    loop = rng.random() < 0.5

    def run(m: Any, x: Any) -> Any:
        left = (x == x).sum() % modulus + 1
        if loop:
            for _ in range(int(left)):
                x = m.layer(x)
            return x
        while left > 0:
            x, left = m.layer(x), left - 1
        return x

    part = Apply(run, layer=nn.Linear(width, width))
    return Block(f"by_value_{times}", part, shape, repeated(prod(shape) * width, times), True)


@make
def branch(rng: Any, shape: Shape) -> Block | None:
    """One of two parts, by a value."""
    width = shape[-1]
    taken = rng.random() < 0.5
    part = Apply(
        lambda m, x: m.wide(x) if bool(x.new_ones(3).sum() > (2 if taken else 4)) else m.thin(x[..., :1]),
        wide=nn.Linear(width, 3), thin=nn.Linear(1, 3),
    )  # fmt: skip
    macs = prod(shape) // width * 3 * (width if taken else 1)
    return Block("branch", part, (*shape[:-1], 3), lambda n, t: product(macs, n, t), True)


ALL = [*PLAIN, *PLAIN, *MAKES]
"""Plain blocks more often than not."""
