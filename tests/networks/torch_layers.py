"""PyTorch's own layers and products as blocks.

Values are (batch, width), (batch, steps, width) or (batch, channels, rows, columns).
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, prod
from typing import Any

import torch
from torch import nn

from .block import NOTHING, Block, Cost, Makes, Shape, free, product, weighed

F = nn.functional
make = MAKES = Makes()


class Apply(nn.Module):
    """``function(module, value)`` with the parameters that are given."""

    def __init__(self, function: Callable[[Any, Any], Any], *weights: Shape, **parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(shape) / 4) for shape in weights)
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, value: Any) -> Any:
        return self.function(self, value)


@make
def linear(rng: Any, shape: Shape) -> Block | None:
    out, bias = rng.randint(1, 6), rng.random() < 0.5
    return Block("linear", nn.Linear(shape[-1], out, bias=bias), (*shape[:-1], out), weighed(prod(shape) * out), True)


def _window(rng: Any, shape: Shape, transposed: bool) -> Block | None:
    """A convolution over all but the first two sizes."""
    channels, sizes = shape[1], shape[2:]
    kernel, stride, dilation, padding = rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2), rng.randint(0, 2)
    out = channels if rng.random() < 0.4 else rng.randint(1, 6)
    shared = gcd(channels, out)
    groups = rng.choice([g for g in range(1, shared + 1) if shared % g == 0] + [shared])
    reach, more = dilation * (kernel - 1) + 1, {}
    if transposed:
        extra = rng.randint(0, max(stride, dilation) - 1)
        after = tuple((n - 1) * stride - 2 * padding + reach + extra for n in sizes)
        more = {"output_padding": extra}
    else:
        after = tuple((n + 2 * padding - reach) // stride + 1 for n in sizes)
        if padding and all(n > padding for n in sizes):
            more = {"padding_mode": rng.choice(["zeros", "zeros", "reflect", "replicate"])}
    if min(after) < 1 or any(n + 2 * padding < reach and not transposed for n in sizes):
        return None
    kind = {
        (1, False): nn.Conv1d, (2, False): nn.Conv2d, (1, True): nn.ConvTranspose1d, (2, True): nn.ConvTranspose2d,
    }[len(sizes), transposed]  # fmt: skip
    layer = kind(
        channels, out, kernel, stride, padding, dilation=dilation, groups=groups, bias=rng.random() < 0.5, **more
    )
    taps = kernel ** len(sizes)
    # Every input element meets the kernel of each output channel of its group; or every output element is a dot product over
    # the input channels of its group.
    met = prod(shape) * (out // groups) if transposed else shape[0] * out * prod(after) * (channels // groups)
    macs = met * taps
    name = f"conv{'_transposed' if transposed else ''}{len(sizes)}d"
    return Block(f"{name}_g{groups}", layer, (shape[0], out, *after), weighed(macs), True)


@make
def convolution(rng: Any, shape: Shape) -> Block | None:
    if len(shape) == 4:
        return _window(rng, shape, rng.random() < 0.35)
    if len(shape) != 3:
        return None
    made = _window(rng, (shape[0], shape[2], shape[1]), rng.random() < 0.35)
    if made is None:
        return None
    part = Apply(lambda m, x: m.layer(x.transpose(1, 2)).transpose(1, 2), layer=made.part)
    return Block(made.name, part, (shape[0], made.shape[2], made.shape[1]), made.form, True)


RECURRENT = {"rnn": (nn.RNN, 1), "gru": (nn.GRU, 3), "lstm": (nn.LSTM, 4)}


@make
def recurrent(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    kind = rng.choice(sorted(RECURRENT))
    layer_class, gates = RECURRENT[kind]
    units, levels, ways = rng.randint(2, 4), rng.randint(1, 2), rng.randint(1, 2)
    projected = rng.randint(1, units - 1) if kind == "lstm" and rng.random() < 0.4 else 0
    options = {"proj_size": projected} if projected else {}
    layer = layer_class(
        width, units, levels, batch_first=True, bidirectional=ways == 2, bias=rng.random() < 0.7, **options
    )
    out = projected or units
    whole = kind == "lstm" and not projected

    def form(needs: bool, trained: bool) -> Cost:
        """Every level and direction: gates x units x (inputs + what recurs), and the projection, at every step.

        oneDNN's kernel, which runs an LSTM without projection, gives all gradients or none. Elsewhere, the first step's
        gradient by what recurs is one by zeros that need none, and a level's input needs one above the first.
        """
        total = NOTHING
        for level in range(levels):
            wide = ways * out if level else width
            again, once = gates * units * out, gates * units * wide
            for _ in range(ways):
                each = Cost(forward=steps * batch * (once + again + units * projected))
                if whole and (needs or trained):
                    each += Cost(inputs=each.forward, weights=each.forward)
                elif needs or trained:
                    by_input = steps * once * (needs or (trained and level > 0))
                    by_input += (steps - 1) * again + steps * units * projected
                    each += Cost(inputs=batch * by_input, weights=each.forward * trained)
                total += each
        return total

    name = f"{kind}{'_projected' if projected else ''}_x{levels}{'_both' if ways == 2 else ''}"
    return Block(name, Apply(lambda m, x: m.layer(x)[0], layer=layer), (batch, steps, ways * out), form, True)


CELLS = {"rnn_cell": (nn.RNNCell, 1), "gru_cell": (nn.GRUCell, 3), "lstm_cell": (nn.LSTMCell, 4)}


@make
def cell(rng: Any, shape: Shape) -> Block | None:
    """A cell in a loop of Python."""
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    kind, units = rng.choice(sorted(CELLS)), rng.randint(1, 4)
    cell_class, gates = CELLS[kind]

    def run(m: Any, x: Any) -> Any:
        state, found = None, []
        for step in x.unbind(1):
            state = m.layer(step, state)
            found.append(state[0] if kind == "lstm_cell" else state)
        return torch.stack(found, 1)

    def form(needs: bool, trained: bool) -> Cost:
        once, again = batch * gates * units * width, batch * gates * units * units
        forward = steps * (once + again)
        by_input = steps * once * needs + (steps - 1) * again * (needs or trained)
        return Cost(forward, by_input, forward * trained)

    return Block(kind, Apply(run, layer=cell_class(width, units)), (batch, steps, units), form, True)


@make
def norm(rng: Any, shape: Shape) -> Block | None:
    width = shape[-1] if len(shape) < 4 else shape[1]
    kinds: dict[str, Callable[[], nn.Module]] = {
        "layer_norm": lambda: nn.LayerNorm(shape[-1]),
        "rms_norm": lambda: nn.RMSNorm(shape[-1]),
        "dropout": lambda: nn.Dropout(0.2),
        "softmax": lambda: nn.Softmax(-1),
    }
    if len(shape) == 4:
        kinds["batch_norm"] = lambda: nn.BatchNorm2d(width)
        kinds["group_norm"] = lambda: nn.GroupNorm(1, width)
    if len(shape) == 2:
        kinds["batch_norm"] = lambda: nn.BatchNorm1d(width)
    kind = rng.choice(sorted(kinds))
    layer = kinds[kind]()
    return Block(kind, layer, shape, free, any(True for _ in layer.parameters()))


@make
def pointwise(rng: Any, shape: Shape) -> Block | None:
    kind = rng.choice([nn.ReLU, nn.GELU, nn.Tanh, nn.SiLU, nn.Sigmoid])
    return Block(kind.__name__.lower(), kind(), shape, free)


@make
def scaled(rng: Any, shape: Shape) -> Block | None:
    return Block("scaled", Apply(lambda m, x: x * m.weights[0], (shape[-1],)), shape, free, True)


@make
def folded(rng: Any, shape: Shape) -> Block | None:
    """Another form of the value."""
    if len(shape) == 2:
        return Block("one_step", Apply(lambda m, x: x.unsqueeze(1)), (shape[0], 1, shape[1]), free)
    if len(shape) == 4:
        flat = (shape[0], shape[2] * shape[3], shape[1])
        return Block("places", Apply(lambda m, x: x.flatten(2).transpose(1, 2)), flat, free)
    if rng.random() < 0.5:
        return Block("mean", Apply(lambda m, x: x.mean(1)), (shape[0], shape[2]), free)
    return Block("map", Apply(lambda m, x: x.unsqueeze(1)), (shape[0], 1, *shape[1:]), free)


WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "einsum": lambda m, x: torch.einsum("...i,ij->...j", x, m.weights[0]),
    "tensordot": lambda m, x: torch.tensordot(x, m.weights[0], 1),
    "matmul": lambda m, x: x @ m.weights[0],
    "inner": lambda m, x: torch.inner(x, m.weights[0].t()),
    "functional": lambda m, x: F.linear(x, m.weights[0].t()),
    "addmm": lambda m, x: torch.addmm(x.new_ones(1), x.flatten(0, -2), m.weights[0]).unflatten(0, x.shape[:-1]),
    "expanded": lambda m, x: torch.bmm(x.flatten(1, -2) if x.dim() > 2 else x[:, None], m.weights[0].expand(len(x), -1, -1))
    .reshape(*x.shape[:-1], -1),
}  # fmt: skip


@make
def written(rng: Any, shape: Shape) -> Block | None:
    """A product that is no layer."""
    kind, out = rng.choice(sorted(WRITTEN)), rng.randint(1, 6)
    if kind == "einsum" and shape[-1] == 1:  # a sum of one: it multiplies element by element
        return None
    return Block(kind, Apply(WRITTEN[kind], (shape[-1], out)), (*shape[:-1], out), weighed(prod(shape) * out), True)


@make
def powers(rng: Any, shape: Shape) -> Block | None:
    """x W W W: the power first, two products of the weight with itself, and then the input's."""
    width, times = shape[-1], rng.randint(2, 3)
    part = Apply(lambda m, x: x @ torch.linalg.matrix_power(m.weights[0], times), (width, width))
    macs = prod(shape) * width

    def form(needs: bool, trained: bool) -> Cost:
        return product(macs, needs, trained) + product(width**3, 0, 2 * trained) * (times - 1)

    return Block(f"power_{times}", part, shape, form, True)


@make
def chained(rng: Any, shape: Shape) -> Block | None:
    """multi_dot of three matrices: the order with fewer multiply-adds."""
    if len(shape) != 2:
        return None
    (rows, width), between, out = shape, rng.randint(1, 6), rng.randint(1, 6)
    left = rows * width * between + rows * between * out
    right = width * between * out + rows * width * out

    def form(needs: bool, trained: bool) -> Cost:
        if left < right:
            after = needs or trained
            return product(rows * width * between, needs, trained) + product(rows * between * out, after, trained)
        return product(width * between * out, 0, 2 * trained) + product(rows * width * out, needs, trained)

    if left == right:
        return None
    part = Apply(lambda m, x: torch.linalg.multi_dot([x, *m.weights]), (width, between), (between, out))
    return Block("multi_dot", part, (rows, out), form, True)


@make
def with_itself(rng: Any, shape: Shape) -> Block | None:
    """X X^T of every sample."""
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    kind = rng.choice(["bmm", "einsum", "matmul"])
    run = {
        "bmm": lambda m, x: torch.bmm(x, x.transpose(1, 2)),
        "einsum": lambda m, x: torch.einsum("bti,bsi->bts", x, x),
        "matmul": lambda m, x: x @ x.mT,
    }[kind]
    if kind == "einsum" and width == 1:
        return None
    macs = batch * steps * steps * width
    return Block(f"self_{kind}", Apply(run), (batch, steps, steps), lambda n, t: product(macs, 2 * n))
