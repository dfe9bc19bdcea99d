"""The HLO instructions that a JAX primitive becomes: their kinds and sizes, and the part of the primitive's work that each does.

Source: jax/_src/lax/lax.py and the files beside it, where ``mlir.register_lowering`` names the operation of each primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....core.causes import Cause
from ....core.records import Op, Tensor
from ....work import ZERO, Work, is_complex, numel, prod
from ...jax.unpadded_convolution import convolution_macs
from ..bridge import known_work, unknown_of

ONE = {
    "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder", "neg": "negate",
    "square": "multiply", "max": "maximum", "min": "minimum", "abs": "abs", "sign": "sign", "is_finite": "is-finite",
    "eq": "compare", "ne": "compare", "lt": "compare", "le": "compare", "gt": "compare", "ge": "compare", "clamp": "clamp",
    "floor": "floor", "ceil": "ceil", "exp": "exponential", "expm1": "exponential-minus-one", "log": "log",
    "log1p": "log-plus-one", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt", "tanh": "tanh", "sin": "sine", "cos": "cosine",
    "tan": "tan", "atan2": "atan2", "pow": "power", "erf": "erf", "select_n": "select", "convert_element_type": "convert",
    "reduce_precision": "reduce-precision", "bitcast_convert_type": "bitcast-convert", "real": "real", "imag": "imag",
    "complex": "complex",
}  # fmt: skip
"""Primitives that are one instruction of their output's size."""
ALIKE = (
    "add", "add_any", "sub", "mul", "neg", "square", "abs", "eq", "ne", "select_n", "real", "imag", "complex",
    "reduce_sum", "reduce_prod", "gather",
)  # fmt: skip
"""Those whose instructions on complex numbers are the same."""
CONJUGATE = ("real", "imag", "negate", "complex")
REAL_PARTS = {"complex64": "float32", "complex128": "float64"}
CHOICE = "choice"
"""The step of a reduction to the place of an extremum, of several instructions."""
REDUCED = {
    "reduce_sum": "add", "reduce_max": "maximum", "reduce_min": "minimum", "reduce_prod": "multiply",
    "argmax": CHOICE, "argmin": CHOICE,
}  # fmt: skip
WINDOWED = {
    "reduce_window_sum": "add", "reduce_window_max": "maximum", "reduce_window_min": "minimum",
    "cumsum": "add", "cumprod": "multiply", "cummax": "maximum", "cummin": "minimum", "select_and_gather_add": CHOICE,
}  # fmt: skip
"""Reductions and the instruction that is one step of them."""
PRODUCTS = ("dot", "convolution")
ALL_REDUCE = "hlo.all-reduce"
"""A sum of devices, which XLA's program of one device has, and a trace of one device as well."""


FILLED = "FILL_OR_DROP"
"""Mode of a gather that takes a value of its own where an index is outside, by a choice for each element of the output."""
Place = tuple[Any, ...]
"""Kind and size of instructions."""


class Part(NamedTuple):
    """``times`` instructions at one place, that is of one kind and size; ``ran`` is the work of one call that each does, which is
    all of the primitive's work, or what it has in the components ``only``. ``cause``: why the instruction does other work."""

    place: Place
    ran: Work
    times: int = 1
    only: tuple[str, ...] = ()
    cause: Cause | None = None


def place(op: Op, counted: Work) -> Place:
    """The place of an instruction that XLA met: products by their count, all others by the size of their output, and reductions
    by their step and by how many elements they read as well."""
    kind = op.op.partition(".")[2]
    if kind in PRODUCTS:
        return ("products", counted.mac)
    size = sum(map(_size, op.outputs[:1]))  # a callback that only reports has no output
    if op.op == ALL_REDUCE:  # one that the compiler joined has several arrays
        return (kind, sum(map(_size, op.outputs)))
    if kind == "select-and-scatter":  # the gradient that it scatters; what it scatters to is padded
        return (kind, prod(op.attrs["window"]["size"]), _size(op.inputs[1]))
    if kind not in ("reduce", "reduce-window"):
        return (kind, size)
    steps = [step for step in op.attrs["to_apply"] if step != "convert"]
    read = _size(op.inputs[0]) if kind == "reduce" else prod(op.attrs["window"]["size"])
    return (kind, read, size, steps[0] if len(steps) == 1 else CHOICE)


def parts(op: Op) -> list[Part] | None:
    """The instructions of a primitive that the trace has; None for one whose instructions are not stated here."""
    name, work = op.op.partition(".")[2], known_work(op) or ZERO
    if op.op == ALL_REDUCE:
        return [Part((name, _size(op.outputs[0])), work)]
    if any(is_complex(tensor.dtype) for tensor in (*op.inputs, *op.outputs)) and name not in ALIKE:
        return _of_complex(name, op, work)
    if name == "dot_general":
        return [Part(("products", work.mac), work)]
    if name == "conv_general_dilated":
        return [Part(("products", _met_by_xla(op)), work)]
    if name == "ragged_dot_general":
        return _masked_parts(op, work)
    if name == "convert_element_type" and op.inputs[0].dtype == op.outputs[0].dtype:
        return []
    if name == "convert_element_type" and op.outputs[0].dtype == "bool":
        return [Part(("compare", _size(op.outputs[0])), work)]
    if name in ONE:
        return [Part((ONE[name], _size(op.outputs[0])), work)]
    if name in REDUCED:
        return [Part(("reduce", _size(op.inputs[0]), _size(op.outputs[0]), REDUCED[name]), work)]
    if name in WINDOWED:
        return [Part(("reduce-window", _window(op), _size(op.outputs[0]), WINDOWED[name]), work)]
    if name == "select_and_scatter_add":
        return [Part(("select-and-scatter", _window(op), _size(op.inputs[0])), work)]
    if name == "gather" and op.attrs.get("mode") == FILLED:
        return [Part(("select", _size(op.outputs[0])), work)]
    if name == "one_minus_square":  # (1 + x) * (1 - x)
        size = _size(op.outputs[0])
        sums = [Part((kind, size), Work(add=size), only=("add",)) for kind in ("add", "subtract")]
        return [*sums, Part(("multiply", size), Work(mul=size), only=("mul",))]
    if name == "integer_pow":
        return _power(op)
    if name == "logistic":  # 1 / (1 + exp(-x)); the work is the function's, which the exponential stands for
        size = _size(op.outputs[0])
        others = {"negate": "add", "add": "add", "divide": "div"}
        return [
            Part(("exponential", size), work),
            *(Part((kind, size), ZERO, only=(component,)) for kind, component in others.items()),
        ]
    return None if work or unknown_of([op]) else []


def _masked_parts(op: Op, work: Work) -> list[Part]:
    """Where no kernel takes groups, every row is multiplied with the matrix of each group, and a mask of zeros leaves one: a
    dense product, and a choice for each element of what is cut into groups (jax/_src/lax/lax.py:6631)."""
    ((contracting, _), (batch, _)), (ragged,), _ = op.attrs["ragged_dot_dimension_numbers"]
    if ragged in batch:
        return [Part(("products", work.mac), work)]
    groups = int((op.inputs[2].shape or ())[-1] or 0)
    cut = op.inputs[:2] if ragged in contracting else op.inputs[:1]
    masks = [Part(("select", groups * _size(tensor)), ZERO, only=("cmp",)) for tensor in cut]
    return [Part(("products", groups * work.mac), work, cause=Cause.ALL_EXPERTS_COUNTED), *masks]


def _of_complex(name: str, op: Op, work: Work) -> list[Part] | None:
    """The instructions of a primitive on complex numbers, where they are others than on real ones. A step of a product has four
    multiply-adds, and XLA counts one (kFmaFlops)."""
    if name == "dot_general":
        return [Part(("products", work.mac // 4), work, cause=Cause.FORMULA_DIFFERS)]
    if name == "conj":
        return [Part((kind, _size(op.outputs[0])), ZERO) for kind in CONJUGATE]
    if name == "convert_element_type" and not is_complex(op.outputs[0].dtype):
        same = REAL_PARTS.get(op.inputs[0].dtype) == op.outputs[0].dtype
        return [Part((kind, _size(op.outputs[0])), ZERO) for kind in (("real",) if same else ("real", "convert"))]
    if name == "convert_element_type":
        return [] if op.inputs[0].dtype == op.outputs[0].dtype else [Part(("convert", _size(op.outputs[0])), ZERO)]
    return None if work or unknown_of([op]) else []


def _power(op: Op) -> list[Part] | None:
    power = op.attrs.get("y", 0)
    size = _size(op.outputs[0])
    products = max(abs(power).bit_length() - 1, 0) + max(abs(power).bit_count() - 1, 0)
    found = [Part(("multiply", size), Work(mul=size), products, only=("mul",))] if products else []
    return found + ([Part(("divide", size), Work(div=size), only=("div",))] if power < 0 else []) if power else None


def _window(op: Op) -> int:
    """The elements that one output of a window is made of; of a cumulative sum, the whole axis."""
    if "window_dimensions" in op.attrs:
        return prod(op.attrs["window_dimensions"])
    return int((op.inputs[0].shape or ())[op.attrs["axis"]] or 0)


def _size(tensor: Tensor) -> int:
    return numel(tensor.shape)


def _met_by_xla(op: Op) -> int:
    """The products that XLA's formula gives for a convolution of the trace."""
    shapes: list[Sequence[int]] = [[int(size or 0) for size in t.shape or ()] for t in (*op.inputs[:2], op.outputs[0])]
    attrs = op.attrs
    dilations = list(zip(attrs["lhs_dilation"], attrs["rhs_dilation"], strict=True))
    groups = (attrs["feature_group_count"], attrs["batch_group_count"])
    return convolution_macs(
        shapes, attrs["dimension_numbers"], attrs["padding"], attrs["window_strides"], dilations, groups
    )
