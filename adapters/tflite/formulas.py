"""Work formulas of TensorFlow Lite's operators ("tflite.<name in the schema>").

Most are the formula of TensorFlow's op of the same name (operators.py), with the bias and the activation that are fused into it.
A quantised operator computes on integers, where only products count: its scales are folded into integers before.
"""

from __future__ import annotations

from ...core.records import Op, Tensor
from ...core.work import (
    PRODUCT_COMPONENTS,
    SINGLE_COMPONENTS,
    Compute,
    UnknownWork,
    Work,
    find,
    formula,
    formulas,
    no_arithmetic,
    opaque,
    prod,
    registered_formulas,
)
from ...work import elementwise, normalization, tensorflow  # noqa: F401
from ...work.common_formulas import per_output, register_unfixed
from ...work.contraction import dots
from ...work.elementwise import ADD, CMP, DIV, MUL, SPECIAL
from ...work.recurrent import GATES
from ...work.shapes import attr, n_in, n_out, rows_along, shape
from .operators import ACTIVATIONS, FILTERS, spell

_SPEC = "tensorflow/compiler/mlir/lite/schema/schema.fbs; tensorflow/lite/kernels"
_ACTIVATIONS = dict(zip(ACTIVATIONS, (Work(), CMP, CMP * 2, CMP * 2, SPECIAL, CMP), strict=True))

_AS_TENSORFLOW = """
ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE ATAN2 AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BITCAST BROADCAST_ARGS
BROADCAST_TO BUCKETIZE CALL CAST CEIL COMPLEX_ABS CONCATENATION CONV_2D CONV_3D CONV_3D_TRANSPOSE COS CUMSUM DEPTHWISE_CONV_2D
DEPTH_TO_SPACE DIV ELU EQUAL EXP EXPAND_DIMS FAKE_QUANT FILL FLOOR FLOOR_DIV FLOOR_MOD GATHER GATHER_ND GREATER GREATER_EQUAL
HASHTABLE HASHTABLE_FIND HASHTABLE_SIZE IF IMAG LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC
LOG_SOFTMAX MATRIX_DIAG MATRIX_SET_DIAG MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL MULTINOMIAL NEG NON_MAX_SUPPRESSION_V4
NON_MAX_SUPPRESSION_V5 NOT_EQUAL ONE_HOT PACK PAD PADV2 POW PRELU RANDOM_STANDARD_NORMAL RANDOM_UNIFORM RANGE RANK
READ_VARIABLE REAL REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE
RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 RFFT2D ROUND RSQRT SCATTER_ND SEGMENT_SUM SELECT SELECT_V2
SHAPE SIGN SIN SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPARSE_TO_DENSE SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE
STRIDED_SLICE SUB SUM TANH TILE TOPK_V2 TRANSPOSE TRANSPOSE_CONV UNIQUE UNPACK UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN
UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM VAR_HANDLE WHERE WHILE ZEROS_LIKE STABLEHLO_COMPOSITE
"""
_BIASES = {
    "CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "CONV_3D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3, "CONV_3D_TRANSPOSE": 3,
}  # fmt: skip
"""Products with a bias -> its place among the inputs."""
_WEIGHTS = {
    "LSTM": (*range(1, 9), 16),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (*range(1, 9), 16),
    "BIDIRECTIONAL_SEQUENCE_LSTM": (*range(1, 9), 16, *range(18, 26), 33, *range(40, 48)),
    "RNN": (1, 2),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (1, 2),
    "BIDIRECTIONAL_SEQUENCE_RNN": (1, 2, 5, 6, 10, 11),
    "SVDF": (1, 2),
}
"""Recurrent layers -> the places of their matrices (M, K), each of which multiplies every row of the input: lite/kernels."""


def _add_fused(compute: Compute) -> Compute:
    """The formula of an operator and what is fused into it; beside products of floats with quantised weights nothing is fixed."""

    def work_of_call(op: Op) -> Work:
        name = op.op.partition(".")[2]
        if op.attrs.get("sparse"):
            raise UnknownWork(
                f"{op.op} has weights that are stored sparse, of which a kernel chooses what it multiplies"
            )
        work = compute(op._replace(inputs=_order_filter(name, op)))
        if work.mac and len({t.dtype[0] == "q" for t in op.inputs[:3] if t.dtype not in ("int32", "int64")}) > 1:
            reason = f"how {op.op} quantises what its quantised weights multiply is a kernel's choice"
            raise UnknownWork(reason, SINGLE_COMPONENTS, work.only(PRODUCT_COMPONENTS))
        if name in _WEIGHTS or not op.outputs:
            return work
        bias = ADD * (len(op.inputs) > _BIASES.get(name, len(op.inputs)))
        return work + (_ACTIVATIONS[op.attrs.get("fused_activation_function", "")] + bias) * n_out(op)

    return work_of_call


def _order_filter(name: str, op: Op) -> tuple[Tensor, ...]:
    if name not in FILTERS:
        return op.inputs
    sizes = shape(op, 1)
    return (op.inputs[0], op.inputs[1]._replace(shape=tuple(sizes[axis] for axis in FILTERS[name])), *op.inputs[2:])


def _fully_connected(op: Op) -> Work:
    return dots(n_out(op), shape(op, 1)[-1])  # x (*, K), weights (N, K)


def _recurrent(op: Op) -> Work:
    name = op.op.partition(".")[2]
    given = dict(zip(op.attrs.get("places", range(len(op.inputs))), range(len(op.inputs)), strict=True))
    basic = name == "LSTM" and len(op.inputs) == 5  # weights (4 H, I + H) of x beside the last output
    sizes = [shape(op, given[place]) for place in ((2,) if basic else _WEIGHTS[name]) if place in given]
    rows = prod(shape(op)[:-1])
    work = Work()
    for m, k in sizes:
        work += dots(rows * m, k)
    if name == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        # four gates with biases; neither peepholes, norms, a projection nor clipping
        plain = set(given) - {18, 19} == {0, *range(1, 9), *range(12, 16)}
        plain = plain and not (op.attrs.get("cell_clip") or op.attrs.get("proj_clip"))
        if plain and op.attrs.get("fused_activation_function") == "TANH":
            return work + (GATES["lstm"][1] + ADD * 4) * (rows * sizes[0][0])
    elif name in ("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"):  # of both products and the bias
        activation = _ACTIVATIONS[op.attrs.get("fused_activation_function", "")]
        return work + (ADD * 2 + activation) * (rows * sizes[0][0])
    raise UnknownWork(f"what the cell of {op.op} does beside its products has no formula here", SINGLE_COMPONENTS, work)


def _l2_normalization(op: Op) -> Work:
    rows = rows_along(op, -1)[0]
    return elementwise.vector_norm(n_in(op), rows, 2) + CMP * rows + DIV * n_in(op)  # max(norm, epsilon)


def _softmax(op: Op) -> Work:
    return normalization.softmax(*rows_along(op, -1)) + MUL * (n_out(op) * (attr(op, "beta", 1.0) != 1))


def _gelu(op: Op) -> Work:
    return elementwise.SHARED["gelu_tanh" if op.attrs.get("approximate") else "gelu"][0] * n_out(op)


_OWN: dict[str, tuple[str, Compute]] = {
    "FULLY_CONNECTED": ("one dot product of K terms per output element", _fully_connected),
    " ".join(_WEIGHTS): ("dot products with each matrix, cells as recurrent.py has them", _recurrent),
    "L2_NORMALIZATION": ("x / max(elementwise.vector_norm, epsilon)", _l2_normalization),
    "GELU": ("by erf, or by tanh where approximate says so", _gelu),
    "HARD_SWISH": (elementwise.ATEN["hardswish"][1], per_output(elementwise.ATEN["hardswish"][0])),
    "QUANTIZE": ("saturate(round(x / scale) + zero point)", per_output(DIV + SPECIAL + CMP * 2 + ADD)),
    # of a smaller float it is a cast
    "DEQUANTIZE": ("(x - zero point) * scale", lambda op: (MUL + ADD) * (n_out(op) * (len(op.inputs) > 1))),
    "SOFTMAX": ("normalization.softmax of beta * x", _softmax),
}
for _names, (_source, _compute) in _OWN.items():
    formulas({_names: (f"{_source}: {_SPEC}", _add_fused(_compute))}, "tflite.")
_TENSORFLOW = {name.lower(): name for kind in ("", "complex") for name in registered_formulas(kind)}
for _name in _AS_TENSORFLOW.split():
    _like = _TENSORFLOW[spell(_name)]
    for _kind in ("", "complex"):
        _entry = find(_like, _kind)
        if _entry is not None and _entry.zero_reason:
            no_arithmetic(_entry.zero_reason, f"tflite.{_name}")
        elif _entry is not None:
            formula(f"tflite.{_name}", source=_entry.source, kind=_kind)(_add_fused(_entry.compute))

for _reason, _names in {
    "looks values up, copies or moves them": "CONCAT_EMBEDDINGS DENSIFY DILATE DYNAMIC_UPDATE_SLICE EMBEDDING_LOOKUP "
    "HASHTABLE_IMPORT HASHTABLE_LOOKUP",
    "runs once, before the first call, to fill variables and tables": "CALL_ONCE",
    "compares text": "SKIP_GRAM",
    "logic on bits": "BITWISE_XOR RIGHT_SHIFT",
}.items():
    no_arithmetic(_reason, *(f"tflite.{_name}" for _name in _names.split()))
for _reason, _names in {
    "its operations on single elements have no formula here": "L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION REDUCE_WINDOW",
    "the data say which values are added or hashed": "EMBEDDING_LOOKUP_SPARSE LSH_PROJECTION",
}.items():
    register_unfixed(_reason, _names, "tflite.")
opaque("tflite.CUSTOM.*", "tflite.DELEGATE", "tflite.STABLEHLO_*")  # whatever their dtypes are
