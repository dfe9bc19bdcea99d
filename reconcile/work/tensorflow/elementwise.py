"""Formulas of TensorFlow elementwise ops with their gradients, reductions, scans, top-k and matrix products."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import Compute, Work, formulas
from .. import elementwise, normalization, ordering
from ..common_formulas import per_output, reduction
from ..contraction import dots, einsum
from ..elementwise import ADD, CMP, MUL
from ..shapes import attr, n_in, n_out, out_shape, rows_along, shape

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


def _per_element(each: Work) -> Compute:
    """``each`` per element of the output, or of the value where the op writes into a variable and has no output."""
    return lambda op: each * (n_out(op) if op.outputs else n_in(op, 1))


def _top_k(op: Op) -> Work:
    # input (..., n)[, k] -> values and indices (..., k)
    return ordering.largest(*rows_along(op, -1), out_shape(op)[-1])


formulas({
    names: (f"{expression}: {_KERNELS}", _per_element(each))
    for row, names in _NAMES.items()
    for each, expression in [elementwise.SHARED[row]]
})  # fmt: skip
formulas({name: (expression, _per_element(each)) for name, (each, expression) in elementwise.TENSORFLOW.items()})
formulas({
    "AddN": (
        "(n - 1) adds per output element: core/kernels/aggregate_ops.cc",
        lambda op: ADD * (n_out(op) * max(len(op.inputs) - 1, 0)),
    ),
    "L2Loss": (
        "sum(t * t * 0.5): core/kernels/l2loss_op.cc",
        lambda op: Work(mul=2 * n_in(op)) + elementwise.reduction(n_in(op), 1, ADD),
    ),
    "Sum": ("N - O adds: core/kernels/reduction_ops_sum.cc", reduction(ADD)),
    "BiasAddGrad": ("N - O adds: core/kernels/bias_op.cc", reduction(ADD)),
    "Mean": (
        "sum, then one division per output: core/kernels/reduction_ops_mean.cc",
        lambda op: normalization.mean(n_in(op), n_out(op)),
    ),
    "Max Min ArgMax ArgMin": ("N - O comparisons: core/kernels/reduction_ops_max.cc, argmax_op.cc", reduction(CMP)),
    "TopK TopKV2": ("ordering.largest, one definition whatever the data: core/kernels/topk_op.cc", _top_k),
    "Prod": ("N - O multiplies: core/kernels/reduction_ops_prod.cc", reduction(MUL)),
    "EuclideanNorm": (
        "square, sum, square root: core/kernels/reduction_ops_euclidean.cc",
        lambda op: elementwise.vector_norm(n_in(op), n_out(op), 2),
    ),
    "Cumsum": ("each element added to an accumulator that starts at 0: core/kernels/scan_ops.h", per_output(ADD)),
    "Cumprod": ("each element multiplied into an accumulator that starts at 1: core/kernels/scan_ops.h", per_output(MUL)),
    "MatMul": (  # a (M, K), or (K, M) if transpose_a
        "one dot product of K terms per output element: core/kernels/matmul_op_impl.h",
        lambda op: dots(n_out(op), shape(op)[0 if attr(op, "transpose_a", False) else 1]),
    ),
    "BatchMatMul BatchMatMulV2 BatchMatMulV3": (  # a (..., M, K), or (..., K, M) if adj_x
        "one dot product of K terms per output element: core/kernels/matmul_op_impl.h",
        lambda op: dots(n_out(op), shape(op)[-2 if attr(op, "adj_x", False) else -1]),
    ),
    "Einsum XlaEinsum": (
        "contraction.einsum: core/kernels/linalg/einsum_op_impl.h",
        lambda op: einsum(str(attr(op, "equation")), [shape(op, i) for i in range(len(op.inputs))]),
    ),
})  # fmt: skip
