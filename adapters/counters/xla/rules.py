"""Rules of XLA's HloCostAnalysis: what each HLO instruction adds to ``flops``.

Source: H = xla/service/hlo_cost_analysis.cc of openxla/xla, by the function that handles an instruction. A multiply-add is 2
FLOPs (``kFmaFlops``), any other element of an elementwise instruction 1, whatever its type: selects, conversions and integers.
Transcendental functions have a total of their own, ``transcendentals``. ``O``: elements of the output, ``N``: of the first input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ...jax.unpadded_convolution import convolution_macs
from ..float32_sums import EXACT, float32_sum
from ..rulebook import NotCounted, RuleBook, size
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"H": "xla/service/hlo_cost_analysis.cc"})
FLOAT32 = "hlo.(float32)"
"""The op of an item with the change from adding in float32."""

ELEMENTS: dict[str, Work] = {
    **dict.fromkeys(("add", "subtract", "negate"), Work(add=1)),
    "multiply": Work(mul=1),
    **dict.fromkeys(("divide", "remainder"), Work(div=1)),
    **dict.fromkeys(("abs", "sign", "maximum", "minimum", "compare", "is-finite", "clamp", "select"), Work(cmp=1)),
    **dict.fromkeys(
        ("floor", "ceil", "round-nearest-afz", "round-nearest-even", "convert", "bitcast-convert",
         "reduce-precision", "stochastic-convert"),
        Work(special=1),
    ),
    **dict.fromkeys(("real", "imag", "complex"), Work(add=1)),
    **dict.fromkeys(
        ("and", "or", "xor", "not", "shift-left", "shift-right-arithmetic", "shift-right-logical", "popcnt",
         "count-leading-zeros"),
        Work(cmp=1),
    ),
}  # fmt: skip
"""Instruction -> what one element of its output adds."""
LOGICAL = ("and", "or", "xor", "not")
TRANSCENDENTAL = (
    "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "power", "sqrt", "cbrt", "rsqrt", "tanh",
    "sine", "cosine", "tan", "atan2", "erf", "rng", "rng-bit-generator",
)  # fmt: skip
TRANSCENDENTALS_COUNTED_APART = "XLA counts transcendental functions in a total of their own"


def _elements(op: Op, each: Work) -> Work:
    return each * size(op.outputs[0].shape)


for _name, _each in ELEMENTS.items():
    BOOK.rule(f"hlo.{_name}", source="H:HandleElementwiseOp", formula="O")(partial(_elements, each=_each))


@BOOK.rule(*(f"hlo.{name}" for name in TRANSCENDENTAL), source="H:HandleElementwiseOp, H:HandleRng", formula="0")
def _transcendental(op: Op) -> Work:
    raise NotCounted(Cause.OP_NOT_COUNTED, TRANSCENDENTALS_COUNTED_APART)


@BOOK.rule("hlo.dot", source="H:GetDotFlops", formula="2 O K, K the contracted sizes of the first operand")
def _dot(op: Op) -> Work:
    sizes = op.inputs[0].shape or ()
    return Work(mac=size(op.outputs[0].shape) * size(tuple(sizes[axis] for axis in op.attrs["contracting"])))


@BOOK.rule(
    "hlo.convolution",
    source="H:GetConvolutionFlops",
    formula="2 per product with an element of the input that is there",
)
def _convolution(op: Op) -> Work:
    window, shapes = op.attrs["window"], [[int(n or 0) for n in t.shape or ()] for t in (*op.inputs[:2], op.outputs[0])]
    dilations = list(zip(window["lhs_dilate"], window["rhs_dilate"], strict=True))
    groups = (op.attrs["feature_group_count"], op.attrs["batch_group_count"])
    numbers = op.attrs["dimension_numbers"]
    return Work(mac=convolution_macs(shapes, numbers, window["pad"], window["stride"], dilations, groups))


def unpadded_macs(op: Op) -> int:
    """Multiply-adds of a convolution as if its whole window lay within the input, 0 of anything else."""
    if op.op != "hlo.convolution":
        return 0
    kernel, features = op.inputs[1].shape or (), op.attrs["dimension_numbers"][1][0]
    return size(op.outputs[0].shape) * size(kernel) // (kernel[features] or 1)


def _steps(op: Op, key: str, times: int) -> Work:
    """``times`` steps of a computation on single values."""
    work = Work()
    for name in op.attrs[key]:
        work += ELEMENTS.get(name, Work())
    return work * times


def steps(op: Op) -> Iterator[Op]:
    """The instructions of a reduction's steps, with how often they run; the reduction itself where it counts other steps."""
    kind, out = op.op.partition(".")[2], size(op.outputs[0].shape)
    times = size(op.inputs[0].shape) - out if kind == "reduce" else out * (prod(op.attrs["window"]["size"]) - 1)
    if (_reduce if kind == "reduce" else _reduce_window)(op) != _steps(op, "to_apply", times):
        yield op
        return
    for name in op.attrs["to_apply"]:
        value = op.inputs[0]._replace(shape=(), **({"dtype": "bool"} if name in LOGICAL else {}))
        attrs = {"primitive": op.attrs["primitive"]}
        yield op._replace(op=f"hlo.{name}", inputs=(value, value), outputs=(value,), calls=times, attrs=attrs)


@BOOK.rule("hlo.reduce", source="H:HandleReduce", formula="(N - O) steps")
def _reduce(op: Op) -> Work:
    return _steps(op, "to_apply", size(op.inputs[0].shape) - size(op.outputs[0].shape))


@BOOK.rule(
    "hlo.reduce-window",
    source="H:HandleReduceWindow",
    formula="O (window - 1) steps; a window that spans its axis from everywhere: O / n + n - 1",
)
def _reduce_window(op: Op) -> Work:
    window, out = op.attrs["window"], op.outputs[0].shape or ()
    outputs, taps = size(out), prod(window["size"])
    steps = outputs * (taps - 1)
    wide = [axis for axis, width in enumerate(window["size"]) if width != 1]
    padded = [axis for axis, pads in enumerate(window["pad"]) if pads != [0, 0]]
    if len(wide) == len(padded) == len(op.outputs) == 1 and wide == padded:
        (axis,), (low, high) = wide, window["pad"][wide[0]]
        span = out[axis] or 0
        if low == high and window["size"][axis] == 2 * low + 1 and low == span - 1:
            steps = outputs // span + span - 1
    return _steps(op, "to_apply", steps)


@BOOK.rule(
    "hlo.select-and-scatter", source="H:HandleSelectAndScatter", formula="S (window - 1) selections and S scatters"
)
def _select_and_scatter(op: Op) -> Work:
    sources = size(op.inputs[1].shape)
    selected = _steps(op, "select", sources * (prod(op.attrs["window"]["size"]) - 1))
    return selected + _steps(op, "scatter", sources)


@BOOK.rule("hlo.scatter", source="H:HandleScatter", formula="one step per element of the first updates")
def _scatter(op: Op) -> Work:
    operands = (len(op.inputs) - 1) // 2
    return _steps(op, "to_apply", size(op.inputs[operands + 1].shape))


@BOOK.rule("hlo.map", source="H:HandleMap", formula="O steps")
def _map(op: Op) -> Work:
    return _steps(op, "to_apply", size(op.outputs[0].shape))


@BOOK.rule("hlo.sort", source="H:HandleSort", formula="N ceil(lg N), N of the whole operand")
def _sort(op: Op) -> Work:
    elements = size(op.inputs[0].shape)
    return Work(cmp=elements * (elements - 1).bit_length() if elements else 0)


@BOOK.rule("hlo.fft", source="H:HandleFft", formula="8 N floor(lg n) per axis")
def _fft(op: Op) -> Work:
    return Work(mac=4 * size(op.inputs[0].shape) * prod([n.bit_length() - 1 for n in op.attrs["fft_length"]]))


@BOOK.rule("hlo.triangular-solve", source="H:HandleTriangularSolve", formula="2 n B")
def _triangular_solve(op: Op) -> Work:
    return Work(mac=size((op.inputs[0].shape or ())[-1:]) * size(op.inputs[1].shape))


@BOOK.rule("hlo.cholesky", source="H:HandleCholesky", formula="n N / 3, rounded down")
def _cholesky(op: Op) -> Work:
    return Work(add=size((op.inputs[0].shape or ())[-1:]) * size(op.inputs[0].shape) // 3)


@BOOK.rule(
    "hlo.all-reduce", "hlo.all-reduce-start", source="H:HandleAllReduce", formula="O, as if there were two replicas"
)
def _all_reduce(op: Op) -> Work:
    return Work(add=sum(size(tensor.shape) for tensor in op.outputs))


@BOOK.rule("hlo.custom-call", source="H:HandleCustomCall", formula="-1, for unknown")
def _custom_call(op: Op) -> Work:
    return Work(add=-1)


@BOOK.rule(
    FLOAT32, source="H:Postprocess", formula="the sum in float32, computation by computation, less the exact sum"
)
def _float32(op: Op) -> Work:
    return Work(add=sum_in_float32(op.attrs["addends"]) - exact_sum(op.attrs["addends"]))


def exact_sum(addends: Sequence[Any]) -> int:
    """The sum of numbers, and of lists of them."""
    return sum(exact_sum(item) if isinstance(item, list) else int(item) for item in addends)


def sum_in_float32(addends: Sequence[Any]) -> int:
    """The same sum in float32, where the sum of each list is taken first."""
    if exact_sum(addends) <= EXACT:
        return exact_sum(addends)
    return int(float32_sum((sum_in_float32(item) if isinstance(item, list) else int(item), 1) for item in addends))
