"""Rules of onnx-tool, operator by operator.

Source: N = onnx_tool/node.py (lines of 1.0.1). Its unit is an instruction, which it calls a MAC (N:21): 1 for a multiply-add, an
add, a product or a comparison, 4 for a division, 24 for a square root, 32 for an exponential or a power, 39 for a sine or a
cosine, 43 for a logarithm.  Its volume of a scalar is 0 (tensor.py:145).

``N``: elements of the first input, ``O``: of the output.
"""

from __future__ import annotations

from functools import partial

from ....core.records import Op, Shape
from ....work import Work, prod
from ..node_bridge import bridge_nodes
from ..rulebook import RuleBook, dims
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family, COUNTERS[0].versions_key, {"N": "onnx_tool/node.py", "OLD": "onnx_tool/node.py (0.8.5)"}
)

RECURRENT = ("GRU", "LSTM")
FIRST_STEP, EVERY_STEP = "<0.9", ">=0.9"
EXP, LOG, ROOT, SINE, DIV = 32, 43, 24, 39, 4


def _volume(shape: Shape) -> int:
    sizes = dims(shape)
    return prod(sizes) if sizes else 0


def _o(op: Op) -> int:
    return _volume(op.outputs[0].shape)


def rule(*names: str, source: str, formula: str, versions: str = ""):  # type: ignore[no-untyped-def]
    """Register a rule for these operators."""
    return BOOK.rule(*(f"onnx.{name}" for name in names), source=source, formula=formula, versions=versions)


def _each(op: Op, work: Work) -> Work:
    return work * _o(op)


# By operator: the work per element of the output, and the line that says so.
for _names, _line, _work, _formula in (
    (("Add", "Sub", "Max", "Ceil"), 251, Work(add=1), "O"),
    (("Min",), 286, Work(cmp=1), "O"),
    (("Neg",), 308, Work(cmp=1), "O"),
    (("Div",), 318, Work(div=DIV), "4 O"),
    (("Mod",), 335, Work(add=1), "O"),
    (("Mul",), 346, Work(mul=1), "O"),
    (("Abs",), 357, Work(cmp=1), "O"),
    (("Exp", "Sigmoid"), 375, Work(special=EXP), "32 O"),
    (("Softmax",), 387, Work(special=EXP, div=DIV), "(32 + 4) O"),
    (("Softplus",), 401, Work(special=EXP + LOG, add=1), "(32 + 1 + 43) O"),
    (("Log",), 414, Work(special=LOG), "43 O"),
    (("InstanceNormalization",), 434, Work(add=2, mul=1, div=DIV), "(1 + 1 + 1 + 4) O"),
    (("LpNormalization",), 441, Work(special=EXP, add=1), "(32 + 1) O"),
    (("Sqrt",), 448, Work(special=ROOT), "24 O"),
    (("Pow",), 459, Work(special=EXP), "32 O"),
    (("Sin",), 470, Work(special=SINE), "39 O"),
    (("Cos",), 481, Work(special=SINE), "39 O"),
    (("Tanh",), 513, Work(special=2 * EXP, add=4, div=2 * DIV), "2 (32 + 2 + 4) O"),
    (("LogSoftmax",), 525, Work(special=EXP + LOG, div=DIV, add=1), "(32 + 4 + 1 + 43) O"),
    (("Atan",), 533, Work(special=2 * ROOT, mul=8, div=2 * DIV), "2 (24 + 4 + 4) O"),
    (("Sign",), 544, Work(cmp=1), "O"),
    (("HardSigmoid",), 555, Work(mul=1, add=1, cmp=2), "(1 + 1 + 2) O"),
    (("HardSwish",), 568, Work(mul=2, add=1, cmp=2), "(2 + 1 + 2) O"),
    (("Relu",), 581, Work(cmp=1), "O"),
    (("Elu",), 591, Work(cmp=1, special=EXP, add=1, mul=1), "(1 + 32 + 1 + 1) O"),
    (("Gelu",), 612, Work(special=EXP, mul=2), "(32 + 2) O"),
    (("PRelu",), 646, Work(cmp=1, mul=1), "2 O"),
    (("LeakyRelu",), 654, Work(cmp=1, mul=1), "2 O"),
    (("Clip",), 925, Work(cmp=2), "2 O"),
    (("Reciprocal",), 945, Work(div=DIV), "4 O"),
    (("BatchNormalization",), 1489, Work(add=2, special=ROOT, div=DIV, mul=1), "(1 + 24 + 4 + 1 + 1) O"),
    (("Hardmax",), 231, Work(add=1), "O"),
    (("CumSum",), 2096, Work(add=1), "O"),
    (("DequantizeLinear",), 2346, Work(mul=1, add=1), "2 O"),
    (("QuantizeLinear",), 2379, Work(mul=1, add=1), "2 O"),
    (("Less", "LessOrEqual", "Round", "Not", "And", "Or", "Xor"), 723, Work(cmp=1), "O"),
    (("NonZero",), 2120, Work(cmp=1), "O"),
    (("Equal",), 2130, Work(cmp=1), "O"),
    (("Floor",), 2140, Work(cmp=1), "O"),
    (("Greater", "GreaterOrEqual"), 2334, Work(cmp=1), "O"),
):
    rule(*_names, source=f"N:{_line}", formula=_formula)(partial(_each, work=_work))


@rule("Sum", source="N:671", formula="(inputs - 1) O")
def _sum(op: Op) -> Work:
    return Work(add=(op.attrs["given"] - 1) * _o(op))


@rule("LRN", source="N:705", formula="(4 + 32 + 1 + size) O")
def _lrn(op: Op) -> Work:
    return Work(div=DIV, special=EXP, add=1, mul=op.attrs["size"]) * _o(op)


def _product(op: Op, k: int) -> Work:
    o = _o(op)
    return Work(mac=o * k, add=o if op.attrs["given"] == 3 else 0)


@rule("Gemm", source="N:863", formula="k O, and O for a third input")
def _gemm(op: Op) -> Work:
    return _product(op, dims(op.inputs[1].shape)[-1 if op.attrs.get("transB", 0) > 0 else -2])


@rule("MatMul", "MatMulInteger", source="N:874", formula="k O, k = b.shape[-2], and O for a third input")
def _mat_mul(op: Op) -> Work:
    b = dims(op.inputs[1].shape)
    return _product(op, b[-2] if len(b) > 1 else 1)


@rule("Einsum", source="N:1090", formula="product of the sizes of all letters")
def _einsum(op: Op) -> Work:
    terms = op.attrs["equation"].partition("->")[0].replace(" ", "").split(",")
    sizes = {
        letter: size
        for term, tensor in zip(terms, op.inputs, strict=True)
        for letter, size in zip(term, dims(tensor.shape), strict=True)
    }
    return Work(mac=prod(tuple(sizes.values())))


@rule("Resize", "Upsample", source="N:1210", formula="4 O linear, 8 O cubic, 0 nearest")
def _resize(op: Op) -> Work:
    taps = {"linear": 4, "cubic": 8}.get(op.attrs.get("mode", "nearest"), 0)
    return Work(mul=taps * _o(op))


@rule("AveragePool", "MaxPool", source="N:1287", formula="k0 k1 O; a third axis of the kernel is left out")
def _pool(op: Op) -> Work:
    kernel = op.attrs["kernel_shape"]
    taps = kernel[0] * (kernel[1] if len(kernel) == 2 else 1)
    return Work(cmp=taps * _o(op)) if op.op == "onnx.MaxPool" else Work(add=taps * _o(op))


@rule("GlobalAveragePool", source="N:1367", formula="N + 4 O")
def _global_average(op: Op) -> Work:
    return Work(add=_volume(op.inputs[0].shape), div=DIV * _o(op))


def _each_read(op: Op, work: Work) -> Work:
    return work * _volume(op.inputs[0].shape)


# By operator: the work per element of the input, and the line that says so.
for _names, _line, _work, _formula in (
    (("ReduceMean", "ReduceSum"), 1784, Work(add=1), "N"),
    (("ReduceProd",), 1799, Work(mul=1), "N"),
    (("ReduceMin", "ReduceMax"), 1827, Work(cmp=1), "N"),
    (("ReduceL2",), 2087, Work(add=1, special=ROOT), "(1 + 24) N"),
):
    rule(*_names, source=f"N:{_line}", formula=_formula)(partial(_each_read, work=_work))


@rule("LayerNormalization", source="N:2366", formula="7 N + 29 N / shape[axis]")
def _layer_norm(op: Op) -> Work:
    shape = [*dims(op.inputs[0].shape)]
    n = prod(shape)
    shape[op.attrs.get("axis", -1)] = 1
    return Work(mul=3, add=4) * n + Work(add=1, special=ROOT, div=DIV) * prod(shape)


@rule("Conv", source="N:2060", formula="O prod(weight.shape[1:]), and O for a bias")
@rule(
    "ConvTranspose", source="N:2565", formula="O prod(weight.shape[1:]), as if it were a convolution, and O for a bias"
)
def _conv(op: Op) -> Work:
    return _product(op, _volume(dims(op.inputs[1].shape)[1:]))


@rule("ConvInteger", source="N:2499", formula="O prod(weight.shape[1:]), at most three of these sizes")
def _conv_integer(op: Op) -> Work:
    return Work(mac=_o(op) * prod(dims(op.inputs[1].shape)[1:4]))


@rule(
    "QLinearConv", source="N:2455", formula="O prod(weight.shape[1:]), at most three of these sizes, and O for a bias"
)
def _q_conv(op: Op) -> Work:
    o = _o(op)
    return Work(mac=o * prod(dims(op.inputs[3].shape)[1:4]), add=o if op.attrs["given"] == 9 else 0)


@rule("QLinearMatMul", source="N:2419", formula="N weight.shape[-1]")
def _q_mat_mul(op: Op) -> Work:
    return Work(mac=_volume(op.inputs[0].shape) * dims(op.inputs[3].shape)[-1])


def _step(op: Op) -> Work:
    """The products and biases of one step of a batch."""
    batch, (w, r) = dims(op.inputs[0].shape)[1], (_volume(op.inputs[index].shape) for index in (1, 2))
    bias = 0 if op.attrs.get("B", "") is None else _volume(op.inputs[3].shape)
    return Work(mac=(w + r) * batch, add=bias * batch)


rule(*RECURRENT, source="OLD:2341, OLD:1661", formula="(W + R + B) batch, of one step of T", versions=FIRST_STEP)(_step)


def _gates(op: Op, gates: int) -> tuple[Work, int]:
    """The products and biases of all steps, and the elements of the states of one direction in all steps."""
    steps, batch = dims(op.inputs[0].shape)[:2]
    return _step(op) * steps, _volume((batch, steps, dims(op.inputs[1].shape)[1] // gates))


@rule(
    "GRU",
    source="N:2655",
    formula="(W + R + B) batch T, and per state (3 + 2 32 + (32 + 2 + 4) + 5), one direction's",
    versions=EVERY_STEP,
)
def _gru(op: Op) -> Work:
    work, states = _gates(op, 3)
    return work + Work(add=3 + 2 + 2, special=3 * EXP, div=DIV, mul=3) * states


@rule(
    "LSTM",
    source="N:1946",
    formula="(W + R + B) batch T, and per state (4 + 3 32 + 2 (32 + 2 + 4) + 4), one direction's",
    versions=EVERY_STEP,
)
def _lstm(op: Op) -> Work:
    work, states = _gates(op, 4)
    return work + Work(add=4 + 2 * 2 + 1, special=5 * EXP, div=2 * DIV, mul=3) * states


def why_not(op: Op) -> str:
    """The reason why a node without a rule is not counted."""
    return f"onnx-tool counts 0 for {op.op.rpartition('.')[2]}"


bridge = partial(bridge_nodes, book=BOOK, why_not=why_not, one_file=True)
