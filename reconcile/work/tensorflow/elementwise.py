"""Formulas of TensorFlow elementwise ops, reductions and matrix products."""

from __future__ import annotations

from collections.abc import Callable

from ...core.records import Op
from ...core.work import Work, formula, formulas
from .. import elementwise, normalization, ordering
from ..contraction import dots, einsum
from ..elementwise import ADD, CMP, MUL
from ..shapes import attr, n_in, n_out, out_shape, shape

_KERNELS = "TensorFlow core/kernels/cwise_ops.h (Eigen)"

# One entry of elementwise.SHARED each, per output element.
_NAMES: dict[str, str] = {
    "add": "Add AddV2 BiasAdd BiasAddV1 AssignAdd AssignAddVariableOp",
    "sub": "Sub AssignSub AssignSubVariableOp",
    "neg": "Neg",
    "mul": "Mul",
    "square": "Square",
    "div": "Div RealDiv",
    "reciprocal": "Reciprocal Inv",
    "compare": (
        "Relu Maximum Minimum Abs Sign Equal NotEqual Less LessEqual Greater GreaterEqual ApproximateEqual "
        "IsNan IsInf IsFinite"
    ),
    "special": (
        "Sigmoid Tanh Exp Expm1 Log Log1p Sqrt Rsqrt Erf Erfc Erfinv Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Asinh "
        "Acosh Atanh Pow Floor Ceil Round Rint"
    ),
    "clamp2": "Relu6 ClipByValue",
    "remainder": "FloorMod Mod TruncateMod",
    "floordiv": "FloorDiv TruncateDiv",
    "xlogy": "Xlogy",
    "softsign": "Softsign",
    "leaky_relu": "LeakyRelu",
}


def _per_element(each: Work) -> Callable[[Op], Work]:
    """``each`` per element of the output, or of the value where the op writes into a variable and has no output."""
    return lambda op: each * (n_out(op) if op.outputs else n_in(op, 1))


for _row, _ops in _NAMES.items():
    _work, _expression = elementwise.SHARED[_row]
    formula(*_ops.split(), source=f"{_expression}: {_KERNELS}")(_per_element(_work))

for _name, (_work, _expression) in elementwise.TENSORFLOW.items():
    formula(_name, source=_expression)(_per_element(_work))


@formula("AddN", source="(n - 1) adds per output element: core/kernels/aggregate_ops.cc")
def _add_n(op: Op) -> Work:
    return ADD * (n_out(op) * max(len(op.inputs) - 1, 0))


@formula("L2Loss", source="sum(t * t * 0.5): core/kernels/l2loss_op.cc")
def _l2_loss(op: Op) -> Work:
    return Work(mul=2 * n_in(op)) + elementwise.reduction(n_in(op), 1, ADD)


def _top_k(op: Op) -> Work:
    # input (..., n)[, k] -> values and indices (..., k)
    n = shape(op)[-1]
    return ordering.largest(n_in(op) // n if n else 0, n, out_shape(op)[-1])


def _make_reduction(step: Work) -> Callable[[Op], Work]:
    return lambda op: elementwise.reduction(n_in(op), n_out(op), step)


formulas({
    "Sum": ("N - O adds: core/kernels/reduction_ops_sum.cc", _make_reduction(ADD)),
    "BiasAddGrad": ("N - O adds: core/kernels/bias_op.cc", _make_reduction(ADD)),
    "Mean": (
        "sum, then one division per output: core/kernels/reduction_ops_mean.cc",
        lambda op: normalization.mean(n_in(op), n_out(op)),
    ),
    "Max Min ArgMax ArgMin": (
        "N - O comparisons: core/kernels/reduction_ops_max.cc, argmax_op.cc", _make_reduction(CMP)
    ),
    "TopK TopKV2": ("ordering.largest, one definition whatever the data: core/kernels/topk_op.cc", _top_k),
    "Prod": ("N - O multiplies: core/kernels/reduction_ops_prod.cc", _make_reduction(MUL)),
    "EuclideanNorm": (
        "square, sum, square root: core/kernels/reduction_ops_euclidean.cc",
        lambda op: elementwise.vector_norm(n_in(op), n_out(op), 2),
    ),
    "Cumsum": ("each element added to an accumulator that starts at 0: core/kernels/scan_ops.h", lambda op: ADD * n_out(op)),
    "Cumprod": (
        "each element multiplied into an accumulator that starts at 1: core/kernels/scan_ops.h",
        lambda op: MUL * n_out(op),
    ),
})  # fmt: skip


@formula("MatMul", source="one dot product of K terms per output element: core/kernels/matmul_op_impl.h")
def _matmul(op: Op) -> Work:
    # a (M, K), or (K, M) if transpose_a
    return dots(n_out(op), shape(op)[0 if attr(op, "transpose_a", False) else 1])


@formula(
    "BatchMatMul",
    "BatchMatMulV2",
    "BatchMatMulV3",
    source="one dot product of K terms per output element: core/kernels/matmul_op_impl.h",
)
def _batch_matmul(op: Op) -> Work:
    # a (..., M, K), or (..., K, M) if adj_x
    return dots(n_out(op), shape(op)[-2 if attr(op, "adj_x", False) else -1])


@formula("Einsum", "XlaEinsum", source="contraction.einsum: core/kernels/linalg/einsum_op_impl.h")
def _einsum(op: Op) -> Work:
    return einsum(str(attr(op, "equation")), [shape(op, i) for i in range(len(op.inputs))])
