"""Rules of onnx-opcounter, operator by operator: multiply-adds of products, and a number per element elsewhere.

Source: C = onnx_opcounter/onnx_opcounter.py (lines of 0.0.4), NEW = the same of 0.1.0, which has formulas of pools, norms,
recurrent layers, einsum and attention.  A size that it does not know is 0 (C:66, NEW:109), and so is the product.
``N``: elements of the first input, ``O``: of the first output; a scalar has 1.
"""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..node_bridge import bridge_nodes
from ..rule_parts import elements_in, elements_out, per_input, per_output, shape_in, shape_out
from ..rulebook import Compute, NotCounted, RuleBook
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {"C": "onnx_opcounter/onnx_opcounter.py", "NEW": "onnx_opcounter/onnx_opcounter.py (0.1.0)"},
)
FEW, MORE = "<0.1", ">=0.1"
COUNTED_AS_ZERO = (
    "Constant", "Reshape", "Slice", "Shape", "Gather", "ScatterND", "Tile", "Transpose", "Sign", "Squeeze", "Unsqueeze", "Split",
    "Cast",
)  # fmt: skip
FREE = (
    "Identity", "Concat", "ConcatFromSequence", "Flatten", "Pad", "Expand", "DepthToSpace", "SpaceToDepth",
    "GatherElements", "GatherND", "ScatterElements", "Scatter", "Compress", "ReverseSequence", "Col2Im", "MaxUnpool",
    "Dropout", "CastLike", "Trilu", "CenterCropPad", "BitCast", "TensorScatter", "ImageDecoder", "RegexFullMatch",
    "StringConcat", "StringNormalizer", "StringSplit", "Size", "ConstantOfShape", "Range", "NonZero", "EyeLike", "Unique",
    "OneHot", "NonMaxSuppression", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
    "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence", "If",
    "Loop", "Scan", "SequenceMap",
)  # fmt: skip
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare", "ArgMax", "ArgMin", "TopK", "Det", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
)  # fmt: skip


def _rule(*names: str, source: str, formula: str, compute: Compute, versions: str = "") -> None:
    BOOK.rule(*(f"onnx.{name}" for name in names), source=source, formula=formula, versions=versions)(compute)


def _conv(op: Op) -> Work:
    channels = shape_in(op)[1]
    kernel = op.attrs.get("kernel_shape") or shape_in(op, 3 if op.op == "onnx.QLinearConv" else 1)[2:]
    return Work(mac=elements_out(op) * (channels // op.attrs.get("group", 1) * prod(kernel)))


def _gemm(op: Op) -> Work:
    return Work(mac=elements_in(op) * shape_out(op)[-1])


def _batch_norm(op: Op) -> Work:
    return Work(mul=1, add=1 if op.attrs["given"] == 5 else 0) * elements_out(op)


def _upsample(op: Op) -> Work:
    return Work(mul=11 * elements_out(op) if op.attrs.get("mode") == "linear" else 0)


def _pool(op: Op, **counts: int) -> Work:
    return Work(**counts) * (elements_out(op) * prod(op.attrs.get("kernel_shape", ())))


def _recurrent(op: Op) -> Work:
    """Every step of every row multiplies both weights; their first size is that of the directions. The first two sizes of the
    input are the steps and the rows, in either layout."""
    return Work(mac=prod(shape_in(op)[:2]) * (elements_in(op, 1) + elements_in(op, 2)))


def _einsum(op: Op) -> Work:
    """For each element of the result, the product of the sizes of letters that it lacks; 1 with ``...`` and without ``->``."""
    terms, arrow, result = op.attrs["equation"].replace(" ", "").partition("->")
    if not arrow or "..." in terms + result:
        return Work(add=elements_out(op))
    sizes: dict[str, int] = {}
    for at, term in enumerate(terms.split(",")):
        sizes |= zip(term, shape_in(op, at), strict=False)
    return Work(mac=elements_out(op) * prod([n for letter, n in sizes.items() if letter not in result]))


def _attention(op: Op) -> Work:
    """Scores and their product with the values, by the heads of the query; three axes count the output's elements alone."""
    query, key, value = (shape_in(op, at) for at in range(3))
    if {len(query), len(key), len(value)} != {4}:
        return Work(add=elements_out(op))
    return Work(mac=prod(query[:3]) * key[2] * (query[3] + value[3]))


def _norm(op: Op, passes: int) -> Work:
    return Work(add=passes + op.attrs["given"] - 1) * elements_out(op)


def _lrn(op: Op) -> Work:
    return Work(mul=op.attrs["size"] * elements_out(op))


def _fourier(op: Op) -> Work:
    sizes = shape_out(op)
    return Work(mul=prod(sizes) * (max((*sizes[-2:-1], 2)).bit_length() - 1))


def _count_nothing(op: Op) -> Work:
    raise NotCounted(Cause.OP_NOT_COUNTED, f"onnx-opcounter counts 0 for {op.op.rpartition('.')[2]}")


_rule("Conv", source="C:119, NEW:171", formula="O (N_channels // group) prod(kernel), without the bias", compute=_conv)
_rule(
    "ConvTranspose",
    source="C:119, NEW:171",
    formula="O (N_channels // group) prod(kernel), as if it were a convolution, without the bias",
    compute=_conv,
)
_rule("Gemm", "MatMul", source="C:131, NEW:186", formula="N O.shape[-1], without the bias", compute=_gemm)
_rule("BatchNormalization", source="C:134, NEW:238", formula="2 O", compute=_batch_norm)
_rule(
    "Upsample",
    "Resize",
    source="C:140, NEW:252",
    formula="11 O linear, 0 nearest; from 0.1.0 on 0 cubic",
    compute=_upsample,
)
_rule("Relu", source="C:149", formula="N", compute=per_input(cmp=1), versions=FEW)
_rule("Relu", source="NEW:264", formula="O", compute=per_output(cmp=1), versions=MORE)
_rule(
    "Add",
    source="C:149",
    formula="N, of the first input, however it is broadcast",
    compute=per_input(add=1),
    versions=FEW,
)
_rule("Add", source="NEW:264", formula="O", compute=per_output(add=1), versions=MORE)
_rule(*COUNTED_AS_ZERO, source="C:152, NEW:270", formula="0", compute=_count_nothing)
for _names, _line, _formula, _compute in (
    (FREE, 48, "0", _count_nothing),
    (("DeformConv", "QLinearConv", "ConvInteger", "CausalConvWithState"), 171, "O (N_channels // group) prod(kernel)", _conv),
    (("QLinearMatMul", "MatMulInteger"), 186, "N O.shape[-1]", _gemm),
    (REDUCTIONS, 267, "N", per_input(add=1)),
    (("MaxPool",), 189, "O prod(kernel)", partial(_pool, cmp=1)),
    (("AveragePool", "LpPool"), 189, "O prod(kernel)", partial(_pool, add=1)),
    (("GlobalMaxPool",), 193, "N", per_input(cmp=1)),
    (("GlobalAveragePool", "GlobalLpPool"), 193, "N", per_input(add=1)),
    (("LSTM", "GRU", "RNN"), 196, "T B (numel(W) + numel(R)), without biases", _recurrent),
    (("Einsum",), 205, "O prod(sizes of letters that the result lacks); O with ... or without ->", _einsum),
    (("Attention", "LinearAttention"), 227, "B heads Lq Lk (E + Ev) with four axes, else O", _attention),
    (
        ("LayerNormalization", "GroupNormalization", "InstanceNormalization", "MeanVarianceNormalization"),
        244, "(5 + inputs - 1) O", partial(_norm, passes=5),
    ),
    (("RMSNormalization",), 244, "(3 + inputs - 1) O", partial(_norm, passes=3)),
    (("LRN",), 249, "O size", _lrn),
    (("DFT", "STFT"), 260, "O floor(log2(O.shape[-2])), at least O", _fourier),
):  # fmt: skip
    # Before, each of them is any other operator.
    _rule(*_names, source="C:192", formula="O", compute=per_output(add=1), versions=FEW)
    _rule(*_names, source=f"NEW:{_line}", formula=_formula, compute=_compute, versions=MORE)


@BOOK.pattern("any other operator", lambda op: True, source="C:192, NEW:264, NEW:340", formula="O")
def _other(op: Op) -> Work:
    return Work(add=elements_out(op))


def why_not(op: Op) -> str:
    """The reason why a node without a rule is not counted; every node has one, unless the ledger is damaged."""
    return f"onnx-opcounter has no number for {op.op}"


bridge = partial(bridge_nodes, book=BOOK, why_not=why_not, one_file=True)
