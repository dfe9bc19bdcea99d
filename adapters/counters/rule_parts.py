"""Helpers that the rules of several counters share, most of them for PyTorch: names of classes and functions, sizes, products,
convolutions, pools, norms, counts per element, recurrent layers.

For a recurrent layer they give the work of one step, and the sum over all steps and layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.records import Op
from ...work import ZERO, Work, prod
from .rulebook import Compute, dims, size

NN, F = "torch.nn.modules.", "torch.nn.functional."
AXES = (1, 2, 3)


def classes(space: str, *names: str) -> tuple[str, ...]:
    """Full names of classes of one module of torch.nn."""
    return tuple(f"{NN}{space}.{name}" for name in names)


def by_axes(space: str, *names: str) -> tuple[str, ...]:
    """Full names of classes that exist for one axis, two and three: ("conv", "Conv") are Conv1d, Conv2d and Conv3d."""
    return classes(space, *(f"{name}{axes}d" for name in names for axes in AXES))


def functional(*names: str) -> tuple[str, ...]:
    """Full names of functions of torch.nn.functional."""
    return tuple(F + name for name in names)


def shape_in(op: Op, at: int = 0) -> tuple[int, ...]:
    """The shape of an input."""
    return dims(op.inputs[at].shape)


def shape_out(op: Op) -> tuple[int, ...]:
    """The shape of the first output."""
    return dims(op.outputs[0].shape)


def elements_in(op: Op, at: int = 0) -> int:
    """Elements of an input."""
    return size(op.inputs[at].shape)


def elements_out(op: Op) -> int:
    """Elements of the first output."""
    return size(op.outputs[0].shape)


def per_input(**counts: int) -> Compute:
    """These operations for each element of the first input."""
    return lambda op: Work(**counts) * elements_in(op)


def per_output(**counts: int) -> Compute:
    """These operations for each element of the first output."""
    return lambda op: Work(**counts) * elements_out(op)


def matrix_product(at: int = 0) -> Compute:
    """The multiply-adds of a matrix, or of a batch of them, with the next input: its elements times the last size of that one."""
    return lambda op: Work(mac=elements_in(op, at) * shape_in(op, at + 1)[-1])


def convolution_of_weight(op: Op) -> Work:
    """B numel(weight) multiply-adds for each position of the output, or of the input if the convolution is transposed."""
    positions = shape_in(op) if op.attrs.get("transposed") else shape_out(op)
    return Work(mac=shape_in(op)[0] * elements_in(op, 1) * prod(positions[2:]))


def dots(terms: int, out: int, biased: bool) -> Work:
    """A dot product of this many terms for each of ``out`` elements, of a counter that takes 2K - 1: a product starts the sum."""
    return Work(mac=terms * out, accumulators=out, add=out if biased else 0)


def flat_window(op: Op) -> int:
    """The window of a pool, of a counter that takes a kernel given as one number for that many elements, whatever the axes
    (torch_flops/flops_ops.py:38, torchscan/modules/flops.py:172)."""
    kernel = op.attrs["kernel_size"]
    return int(kernel) if isinstance(kernel, int) else prod(kernel)


def shrunk(op: Op) -> tuple[int, ...]:
    """The window of an adaptive pool by axis: the quotient of both sizes, or the remainder and 1 if there is one
    (torch_flops/flops_ops.py:44, torchscan/modules/_pooling.py:9)."""
    pairs = zip(shape_in(op)[2:], shape_out(op)[2:], strict=True)
    return tuple(i % o + 1 if i % o else i // o for i, o in pairs)


def shrunk_window(op: Op) -> int:
    """The elements of that window."""
    return prod(shrunk(op))


def max_pool(window: Callable[[Op], int]) -> Compute:
    """A comparison with each element of a window after the first, for each element of the output."""
    return lambda op: Work(cmp=window(op) - 1) * elements_out(op)


def average_pool(window: Callable[[Op], int]) -> Compute:
    """The sum of a window and a division, for each element of the output."""
    return lambda op: Work(add=window(op) - 1, div=1) * elements_out(op)


def two_or_four(op: Op) -> Work:
    """A norm: two operations for each element of the input, and two more if it has weights."""
    affine = op.attrs.get("affine", False) or op.attrs.get("elementwise_affine", False)
    return (Work(add=2, mul=2) if affine else Work(add=1, mul=1)) * elements_in(op)


def printed_flops(equation: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """numpy.einsum_path's optimized FLOP count, of which it prints four digits."""
    import numpy as np  # not at home, unless a counter met an einsum

    text = np.einsum_path(equation, *(np.broadcast_to(np.float32(0), s) for s in shapes), optimize="optimal")[1]
    line = next(part for part in text.split("\n") if "optimized flop" in part.lower())
    return int(float(line.split(":")[-1]))


Step = Callable[[Op, int], Work]
"""The work of one step of one layer for one row, by the width of the layer's input."""

GATES = {"RNN": (1, 0, 1), "GRU": (3, 3, 4), "LSTM": (4, 5, 5)}
"""Gates, and multiplications and additions for each hidden element and step, by kind of layer, in DeepSpeed and ptflops."""
THOP_GATES = {"RNN": (1, 0, 0), "GRU": (3, 3, 1), "LSTM": (4, 3, 1)}
"""The same in thop, except one addition for each gate, or three with biases."""

LAYERS = classes("rnn", *GATES)
CELLS = classes("rnn", *(f"{kind}Cell" for kind in GATES))


def kind_of(op: Op) -> str:
    """RNN, GRU or LSTM: of the class, or of the nearest base."""
    names = (name.rpartition(".")[2].removesuffix("Cell") for name in (op.op, *op.attrs.get("bases", ())))
    return next(name for name in names if name in GATES)


def state_of(op: Op) -> int:
    """The width of the state that goes into the next step: projected, if the layer projects it."""
    return int(op.attrs.get("proj_size") or op.attrs["hidden_size"])


def biases(op: Op) -> Work:
    """Both biases of one step, whether or not the layer has them."""
    return Work(add=2 * GATES[kind_of(op)][0] * op.attrs["hidden_size"])


def thop_step(op: Op, width: int, projected: int = 0) -> Work:
    """H = hidden_size, I = ``width``, P = the width of the state if it is projected, which adds the projection.

    RNN: H(I+H) + H [+ 2H bias]; GRU: 3H(I+H) + 3H + r*h: H + state: 3H [+ 6H]; LSTM: 4H(I+H) + 4H + c: 3H + h: H [+ 8H].
    """
    hidden: int = op.attrs["hidden_size"]
    gates, mul, add = THOP_GATES[kind_of(op)]
    return Work(
        mac=gates * hidden * (width + (projected or hidden)) + hidden * projected,
        add=gates * hidden * (3 if op.attrs["bias"] else 1) + add * hidden,
        mul=mul * hidden,
    )


def all_layers(op: Op, step: Step, state: int) -> Work:
    """One step of every layer for one row, both directions alike; a layer above the first takes the states of both."""
    directions = 2 if op.attrs["bidirectional"] else 1
    widths = [op.attrs["input_size"], *[directions * state] * (op.attrs["num_layers"] - 1)]
    return sum((step(op, width) for width in widths), ZERO) * directions


def one_step(step: Step) -> Compute:
    """A cell: one step for as many rows as the first size of the input."""
    return lambda op: step(op, op.attrs["input_size"]) * shape_in(op)[0]
