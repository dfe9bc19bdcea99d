"""Formulas of DeepSpeed's FLOPs profiler and its fork calflops for one call of a function, or of a recurrent module.

Both have the same formulas except some that DeepSpeed corrected later; each cites its own lines.  N are the elements of the
first tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..rule_parts import (
    GATES,
    Step,
    all_layers,
    biases,
    elements_in,
    kind_of,
    matrix_product,
    one_step,
    printed_flops,
    shape_in,
    state_of,
)
from ..rulebook import Compute, NotCounted, dims, size


def of_torch(*names: str) -> tuple[str, ...]:
    """Full names of functions that torch and its tensors have."""
    return tuple(f"{space}.{name}" for name in names for space in ("torch", "torch.Tensor"))


def gated_step(op: Op, width: int) -> Work:
    """Both products and elementwise work, without biases (``biases`` has these)."""
    hidden = op.attrs["hidden_size"]
    gates, mul, add = GATES[kind_of(op)]
    return Work(mac=gates * hidden * (width + state_of(op)), mul=mul * hidden, add=add * hidden)


def first_two_sizes(step: Step) -> Compute:
    """Every layer, for as many rows as the first two sizes of the input make, whichever of them is the batch."""

    def compute(op: Op) -> Work:
        rows = shape_in(op)
        return all_layers(op, step, state_of(op)) * (rows[0] * rows[1])

    return compute


def norm(plain: Work, affine: Work) -> Compute:
    """Operations for each element of the input, if the norm has no weight and if it has one."""
    return lambda op: (affine if op.given("weight") else plain) * elements_in(op)


def count_nothing(op: Op) -> Work:
    """The rule of a function whose formula returns 0, whatever the call: raises NotCounted."""
    raise NotCounted(Cause.OP_NOT_COUNTED, f"its formula for {op.op} returns 0")


def linear(op: Op) -> Work:
    """numel(x) multiply-adds for each of weight.shape[0] outputs."""
    return Work(mac=elements_in(op) * shape_in(op, 1)[0])


def _each(value: object, axes: int) -> list[int]:
    return [int(item) for item in value] if isinstance(value, (list, tuple)) else [int(str(value))] * axes


def _shrunk(op: Op) -> list[int]:
    """The output positions of a convolution, by axis; padding="same" pads both sides alike."""
    x, w = shape_in(op), shape_in(op, 1)
    axes = len(w) - 2
    stride, dilation = _each(op.attrs["stride"], axes), _each(op.attrs["dilation"], axes)
    padding = op.attrs["padding"]
    reach = [d * (k - 1) for d, k in zip(dilation, w[2:], strict=True)]
    named = {"valid": [0] * axes, "same": [r // 2 for r in reach]}
    pads = named[padding] if isinstance(padding, str) else _each(padding, axes)
    return [(x[2 + i] + 2 * pads[i] - (reach[i] + 1)) // stride[i] + 1 for i in range(len(x) - 2)]


def convolution(op: Op) -> Work:
    """B prod(output) prod(kernel) Cin (Cout / groups) multiply-adds, and a bias per output."""
    x, w = shape_in(op), shape_in(op, 1)
    positions = x[0] * prod(_shrunk(op))
    macs = prod(w[2:]) * x[1] * (w[0] // op.attrs["groups"]) * positions
    return Work(mac=macs, add=w[0] * positions if op.given("bias") else 0)


def transposed_twice_grouped(op: Op) -> Work:
    """The weight's second dimension is divided by the groups once more, and the bias has a convolution's output positions."""
    x, w = shape_in(op), shape_in(op, 1)
    macs = x[0] * prod(x[2:]) * prod(w[2:]) * x[1] * (w[1] // op.attrs["groups"])
    return Work(mac=macs, add=w[1] * x[0] * prod(_shrunk(op)) if op.given("bias") else 0)


def transposed_convolution(op: Op) -> Work:
    """B prod(input) prod(kernel) Cin (Cout / groups) multiply-adds, and a bias per output."""
    x, w = shape_in(op), shape_in(op, 1)
    axes = len(w) - 2
    stride, padding, dilation, more = (
        _each(op.attrs[name], axes) for name in ("stride", "padding", "dilation", "output_padding")
    )
    out = [
        (x[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w[2 + i] - 1) + more[i] + 1 for i in range(axes)
    ]
    bias = w[1] * op.attrs["groups"] * x[0] * prod(out) if op.given("bias") else 0
    return Work(mac=prod(w[2:]) * x[1] * w[1] * x[0] * prod(x[2:]), add=bias)


def resize_rule(scaled: Callable[[tuple[int, ...], object], int]) -> Compute:
    """prod(size), of one channel of one example, if a size is given; else ``scaled(shape of the input, scale_factor)``."""

    def compute(op: Op) -> Work:
        given = [*op.attrs["args"], None, None][1:3]
        wanted, scale = (
            op.attrs.get(name) if value is None else value
            for name, value in zip(("size", "scale_factor"), given, strict=True)
        )
        if wanted is not None:
            return Work(mul=prod(_each(wanted, 1)))
        return Work(mul=scaled(shape_in(op), scale))

    return compute


def as_large_as_input(shape: tuple[int, ...], scale: object) -> int:
    """N: the product with the scale is computed and dropped."""
    return prod(shape)


def scaled_up(shape: tuple[int, ...], scale: object) -> int:
    """N times the scale of each axis."""
    return _scaled_size(shape, scale, len(shape) - 2)


def scaled_by_batch(shape: tuple[int, ...], scale: object) -> int:
    """N times as many scales as there are examples: the length of a tensor is that of its first axis."""
    return _scaled_size(shape, scale, shape[0])


def _scaled_size(shape: tuple[int, ...], scale: object, axes: int) -> int:
    # In the order in which the counter multiplies: its numbers are floats, and it cuts the last one off.
    if isinstance(scale, (list, tuple)):
        return int(prod(shape) * math.prod(scale))
    return int(prod(shape) * (scale if isinstance(scale, (int, float)) else 1) ** axes)


matmul = matrix_product()
"""prod(x) other.shape[-1] multiply-adds."""


def addmm(op: Op) -> Work:
    """The product as in matmul, and an add for each element of the added tensor."""
    return Work(mac=size(op.inputs[1].shape) * shape_in(op, 2)[-1], add=elements_in(op))


def attention(op: Op) -> Work:
    """The multiply-adds of both products of attention, on all pairs of a query and a key."""
    q, k, v = (dims(t.shape) for t in op.inputs[:3])
    return Work(mac=prod(q) * k[-2] + prod(q[:-1]) * k[-2] * v[-1])


def einsum(op: Op) -> Work:
    """numpy's count for the cheapest order, printed with four digits: its FLOPs in pairs are multiply-adds."""
    equation = op.attrs.get("equation") or next(item for item in op.attrs["args"] if isinstance(item, str))
    flops = printed_flops(equation.replace(" ", ""), [dims(t.shape) for t in op.inputs])
    return Work(mac=flops // 2, add=flops % 2)


def elementwise(kind: str, elements: Callable[[tuple[int, ...], tuple[int, ...]], int]) -> Compute:
    """One of this kind for each element of both tensors together, of the one tensor, or 1 of two numbers."""

    def compute(op: Op) -> Work:
        shapes = [dims(tensor.shape) for tensor in op.inputs[:2]]
        return Work(**{kind: elements(*shapes) if len(shapes) == 2 else prod(shapes[0]) if shapes else 1})

    return compute


def from_the_left(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """The larger of both sizes at each place, counted from the first dimension."""
    longest = max(len(a), len(b))
    pairs = zip((a + (1,) * longest)[:longest], (b + (1,) * longest)[:longest], strict=True)
    return prod([max(pair) for pair in pairs])


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Elements of the result."""
    longest = max(len(a), len(b))
    pairs = zip((1,) * (longest - len(a)) + a, (1,) * (longest - len(b)) + b, strict=True)
    return prod([y if x == 1 else x for x, y in pairs])


def _step(op: Op, width: int) -> Work:
    """Both products with one addition less for each gate, elementwise work, and biases; a projection is left out."""
    work = gated_step(op, width)
    return work if op.attrs["bias"] else work - biases(op)


recurrent = first_two_sizes(_step)
cell = one_step(_step)
