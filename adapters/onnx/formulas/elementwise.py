"""Work formulas of ONNX elementwise operators and reductions."""

from __future__ import annotations

from collections.abc import Callable

from ....core.records import Op
from ....core.work import UnknownWork, Work, formula, formulas
from ....work import elementwise, linalg, normalization, ordering
from ....work.common_formulas import per_matrix, per_output, register_unfixed
from ....work.elementwise import (
    ADD,
    CMP,
    DIV,
    MUL,
    SPECIAL,
)
from ....work.shapes import n_in, n_out, shape

_SPEC = "onnx.ai/onnx/operators"

# One entry of elementwise.SHARED each, per output element.
_NAMES: dict[str, str] = {
    "add": "Add",
    "sub": "Sub",
    "neg": "Neg",
    "mul": "Mul",
    "div": "Div",
    "reciprocal": "Reciprocal",
    "compare": "Relu Abs Sign Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf ThresholdedRelu",
    "special": (
        "Sigmoid Tanh Exp Log Sqrt Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Floor Ceil Round"
    ),
    "remainder": "Mod",
    "silu": "Swish",
    "softsign": "Softsign",
    "leaky_relu": "LeakyRelu PRelu",
}
for _row, _ops in _NAMES.items():
    _work, _expression = elementwise.SHARED[_row]
    formula(*(f"onnx.{name}" for name in _ops.split()), source=f"{_expression}: {_SPEC}")(per_output(_work))

# As ATen computes them: the definitions are the same.
for _name, _row in {
    "Elu": "elu",
    "Selu": "elu",
    "Celu": "elu",
    "Softplus": "softplus",
    "HardSwish": "hardswish",
    "Mish": "mish",
    "Shrink": "softshrink",
}.items():
    _work, _expression = elementwise.ATEN[_row]
    formula(f"onnx.{_name}", source=f"{_expression}: {_SPEC}")(per_output(_work))

formula("onnx.HardSigmoid", source=f"max(0, min(1, alpha * x + beta)): {_SPEC}")(per_output(MUL + ADD + CMP * 2))


@formula("onnx.Gelu", source=f"by erf, or by tanh where approximate says so: {_SPEC}")
def _gelu(op: Op) -> Work:
    return elementwise.SHARED["gelu_tanh" if op.attrs.get("approximate") == "tanh" else "gelu"][0] * n_out(op)


@formula("onnx.Pow", source=f"pow(x, y), the exponent a value that a record does not hold: {_SPEC}")
def _pow(op: Op) -> Work:
    exponent = op.attrs.get("exponent")  # set by the tracer if it is a constant scalar
    each = elementwise.POWER.get(float(exponent)) if exponent is not None else None
    return (each[0] if each else SPECIAL) * n_out(op)


@formula("onnx.Clip", source=f"min(max(x, low), high), one comparison per bound that is given: {_SPEC}")
def _clip(op: Op) -> Work:
    bounds = len(op.inputs) - 1 + sum(isinstance(op.attrs.get(name), (int, float)) for name in ("min", "max"))
    return CMP * (bounds * n_out(op))


@formula("onnx.Sum", "onnx.Mean", "onnx.Max", "onnx.Min", source=f"(n - 1) steps per output element: {_SPEC}")
def _variadic(op: Op) -> Work:
    step = CMP if op.op in ("onnx.Max", "onnx.Min") else ADD
    return step * (n_out(op) * (len(op.inputs) - 1)) + (DIV * n_out(op) if op.op == "onnx.Mean" else Work())


def _make_reduction(step: Work) -> Callable[[Op], Work]:
    return lambda op: elementwise.reduction(n_in(op), n_out(op), step)


formulas({
    "ReduceSum": (f"N - O adds: {_SPEC}", _make_reduction(ADD)),
    "ReduceMean": (f"sum, then one division per output: {_SPEC}", lambda op: normalization.mean(n_in(op), n_out(op))),
    "ReduceMax ReduceMin ArgMax ArgMin": (f"N - O comparisons: {_SPEC}", _make_reduction(CMP)),
    "ReduceProd": (f"N - O multiplies: {_SPEC}", _make_reduction(MUL)),
    "ReduceSumSquare": (f"square: mul N; sum: add N - O: {_SPEC}", lambda op: MUL * n_in(op) + _make_reduction(ADD)(op)),
    "ReduceL1": (f"elementwise.vector_norm: {_SPEC}", lambda op: elementwise.vector_norm(n_in(op), n_out(op), 1)),
    "ReduceL2": (f"elementwise.vector_norm: {_SPEC}", lambda op: elementwise.vector_norm(n_in(op), n_out(op), 2)),
    "ReduceLogSumExp": (f"elementwise.logsumexp: {_SPEC}", lambda op: elementwise.logsumexp(n_in(op), n_out(op))),
    "CumSum": (f"each element added to an accumulator that starts at 0: {_SPEC}", lambda op: ADD * n_in(op)),
    "CumProd": (f"each element multiplied to an accumulator that starts at 1: {_SPEC}", lambda op: MUL * n_in(op)),
    "Col2Im": (f"each column element added to the zeroed image: {_SPEC}", lambda op: ADD * n_in(op)),
    "Det": (f"linalg.determinant: {_SPEC}", per_matrix(linalg.determinant)),
}, "onnx.")  # fmt: skip


@formula("onnx.TopK", source=f"ordering.largest, one definition whatever the data: {_SPEC}")
def _top_k(op: Op) -> Work:
    sizes, axis = shape(op), op.attrs.get("axis", -1)
    if not isinstance(axis, int) or not op.outputs or op.outputs[0].shape is None:
        raise UnknownWork("onnx.TopK: its axis or output is not in the record")
    n, k = sizes[axis], op.outputs[0].shape[axis]
    if k is None:
        raise UnknownWork("onnx.TopK: the size k is not known")
    return ordering.largest(n_in(op) // n if n else 0, n, k)


_UNFIXED = {
    "a library of transforms chooses the algorithm by the length": "DFT STFT",
    "the boxes say which pairs or elements are computed": "NonMaxSuppression RoiAlign MaxRoiPool",
    "its operations on single elements have no formula here": "LRN MelWeightMatrix TfIdfVectorizer",
    "the picture in its bytes says how it is decoded": "ImageDecoder",
}
"""Why the work of these operators is not fixed -> their names."""
for _reason, _ops in _UNFIXED.items():
    register_unfixed(_reason, _ops, "onnx.")
