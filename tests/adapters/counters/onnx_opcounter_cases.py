"""onnx-opcounter's calculators by hand, from onnx_opcounter/onnx_opcounter.py of 0.0.4 and 0.1.0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.adapters.counters.onnx_opcounter.rules import FREE, REDUCTIONS
from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

FEW, MORE = ("0.0.4",), ("0.1.0",)
RELEASES = FEW + MORE

X = (2, 3, 4, 4)
N = 2 * 3 * 4 * 4
NOTHING = (
    "Constant", "Reshape", "Slice", "Shape", "Gather", "ScatterND", "Tile", "Transpose", "Sign", "Squeeze", "Unsqueeze", "Split",
    "Cast",
)  # fmt: skip


def node(name: str, inputs: list[Shape], outputs: list[Shape], **attrs: Any) -> Op:
    """An operator with all of its inputs given."""
    return op(f"onnx.{name}", inputs, outputs, given=len(inputs), **attrs)


def products() -> Iterator[Case]:
    """2 x 6 channels x (4, 5) positions, each from 3 channels of 3 x 2 taps; no bias counts."""
    image, out = (2, 3, 6, 6), (2, 6, 4, 5)
    o = 2 * 6 * 4 * 5
    for inputs in ([image, (6, 3, 3, 2)], [image, (6, 3, 3, 2), (6,)]):
        yield Case(node("Conv", inputs, [out], kernel_shape=[3, 2]), RELEASES, o * 18, Work(mac=o * 18))
    grouped = node("Conv", [image, (6, 1, 3, 2)], [out], kernel_shape=[3, 2], group=3)
    yield Case(grouped, RELEASES, o * 6, Work(mac=o * 6))
    open_ = node("Conv", [(2, None, 6, 6), (6, 3, 3, 2)], [out], kernel_shape=[3, 2])
    yield Case(open_, RELEASES, missed=Cause.SHAPE_UNKNOWN)
    # 3 channels at 4 x 4 to 5 at 8 x 8 by 2 x 2: an input reaches 5 * 4 outputs; it takes 3 * 4 products for each output.
    transposed = node("ConvTranspose", [(1, 3, 4, 4), (3, 5, 2, 2)], [(1, 5, 8, 8)], kernel_shape=[2, 2])
    yield Case(transposed, RELEASES, 5 * 64 * 12, Work(mac=5 * 64 * 12))
    # (2, 3) x (3, 5); and one matrix by four, of which it counts one.
    for name, inputs in (("Gemm", [(2, 3), (3, 5), (5,)]), ("MatMul", [(2, 3), (3, 5)])):
        yield Case(node(name, [*inputs], [(2, 5)]), RELEASES, 30, Work(mac=30))
    yield Case(node("MatMul", [(2, 3), (4, 3, 5)], [(4, 2, 5)]), RELEASES, 30, Work(mac=30))
    yield Case(node("MatMul", [(2, 3), (3, None)], [(2, None)]), RELEASES, missed=Cause.SHAPE_UNKNOWN)


def elementwise() -> Iterator[Case]:
    """The first input of an addition and a ReLU, the output of the rest; a scalar has 1."""
    norm = Work(mul=N, add=N)
    yield Case(node("BatchNormalization", [X, (3,), (3,), (3,), (3,)], [X]), RELEASES, 2 * N, norm)
    yield Case(node("Relu", [X], [X]), RELEASES, N, Work(cmp=N))
    yield Case(node("Add", [(4,), X], [X]), FEW, 4, Work(add=4))
    yield Case(node("Add", [(4,), X], [X]), MORE, N, Work(add=N))
    yield Case(node("Add", [X, (4,)], [X]), RELEASES, N, Work(add=N))
    yield Case(node("Add", [(), ()], [()]), RELEASES, 1, Work(add=1))
    wide = (2, 3, 8, 8)
    for name in ("Upsample", "Resize"):
        yield Case(node(name, [X], [wide], mode="nearest"), RELEASES, 0, Work())
        yield Case(node(name, [X], [wide]), RELEASES, 0, Work())
        yield Case(node(name, [X], [wide], mode="linear"), RELEASES, 11 * 4 * N, Work(mul=11 * 4 * N))
    for name in ("Mul", "Sigmoid", "Softmax"):
        yield Case(node(name, [X], [(2, 3, 2, 2)]), RELEASES, 24, Work(add=24))
    yield Case(node("Mul", [X], [(2, None)]), RELEASES, missed=Cause.SHAPE_UNKNOWN)
    for name in NOTHING:
        yield Case(node(name, [X], [X]), RELEASES, missed=Cause.OP_NOT_COUNTED)


LATER = (
    *FREE, *REDUCTIONS, "DeformConv", "QLinearConv", "ConvInteger", "CausalConvWithState", "QLinearMatMul", "MatMulInteger",
    "MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool", "LSTM", "GRU", "RNN", "Einsum",
    "Attention", "LinearAttention", "LayerNormalization", "GroupNormalization", "InstanceNormalization",
    "MeanVarianceNormalization", "RMSNormalization", "LRN", "DFT", "STFT",
)  # fmt: skip
"""Operators that 0.0.4 does not know."""
GRU: list[Shape] = [(7, 2, 5), (1, 9, 5), (1, 9, 3)]
NORMS = (
    ("LayerNormalization", 2, 6), ("InstanceNormalization", 3, 7), ("GroupNormalization", 3, 7),
    ("MeanVarianceNormalization", 1, 5), ("RMSNormalization", 2, 4),
)  # fmt: skip
"""Norms with as many inputs, and what 0.1.0 counts for each element."""
HEADS: list[Shape] = [(2, 4, 6, 8), (2, 2, 5, 8), (2, 2, 5, 3)]


def formulas_of_0_1() -> Iterator[Case]:
    """7 steps of 2 rows by 9 x 5 and 9 x 3 weights; 4 heads of 6 queries beside 5 keys, 8 and 3 wide; windows of 2 x 2."""
    out: list[Shape] = [(2, 3, 2, 2)]
    for name in LATER:
        yield Case(node(name, [X], out), FEW, 24, Work(add=24))
    for name, shapes in (("GRU", GRU), ("RNN", GRU), ("LSTM", [(2, 7, 5), *GRU[1:]])):  # its layout 0 and 1
        yield Case(node(name, shapes, [(7, 1, 2, 3)]), MORE, 14 * (45 + 27), Work(mac=14 * (45 + 27)))
    for name in ("Attention", "LinearAttention"):
        yield Case(node(name, HEADS, [(2, 4, 6, 3)]), MORE, 2 * 4 * 6 * 5 * 11, Work(mac=2 * 4 * 6 * 5 * 11))
    three: list[Shape] = [(2, 6, 8)] * 3
    yield Case(node("Attention", three, [(2, 6, 8)]), MORE, 96, Work(add=96))
    for equation, total in (("bij, bjk -> bik", 2 * 3 * 4 * 5), ("bij,bjk->", 2 * 3 * 4 * 5)):
        result: Shape = (2, 3, 5) if equation.endswith("k") else ()
        case = node("Einsum", [(2, 3, 4), (2, 4, 5)], [result], equation=equation)
        yield Case(case, MORE, total, Work(mac=total))
    for equation in ("...ij,...jk->...ik", "bij,bjk"):
        yield Case(node("Einsum", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], equation=equation), MORE, 30, Work(add=30))
    window = {"kernel_shape": [2, 2]}
    for name, pooled in (("MaxPool", Work(cmp=1)), ("AveragePool", Work(add=1)), ("LpPool", Work(add=1))):
        yield Case(node(name, [X], out, **window), MORE, 24 * 4, pooled * (24 * 4))
        yield Case(node("Global" + name, [X], [(2, 3, 1, 1)]), MORE, N, pooled * N)
    for name in REDUCTIONS:
        yield Case(node(name, [X], [(2, 3)]), MORE, N, Work(add=N))
    for name, inputs, each in NORMS:
        yield Case(node(name, [X, *[(4,)] * (inputs - 1)], [X]), MORE, each * N, Work(add=each * N))
    yield Case(node("LRN", [X], [X], size=5), MORE, 5 * N, Work(mul=5 * N))
    for name, length, each in (("DFT", 1, 1), ("DFT", 7, 2), ("STFT", 8, 3)):  # the whole part of the logarithm
        total = 4 * length * each
        yield Case(node(name, [(2, length, 2)], [(2, length, 2)]), MORE, total, Work(mul=total))
    # Without kernel_shape it takes the weight's last sizes; that of QLinearConv is its fourth input.
    image, weight = (2, 3, 6, 6), (6, 3, 3, 2)
    for name in ("Conv", "DeformConv", "ConvInteger", "CausalConvWithState"):
        yield Case(node(name, [image, weight], [(2, 6, 4, 5)]), MORE, 240 * 18, Work(mac=240 * 18))
    yield Case(node("QLinearConv", [image, (), (), weight], [(2, 6, 4, 5)]), MORE, 240 * 18, Work(mac=240 * 18))
    for name in ("QLinearMatMul", "MatMulInteger"):
        yield Case(node(name, [(2, 3), (3, 5)], [(2, 5)]), MORE, 30, Work(mac=30))
    for name in FREE:
        yield Case(node(name, [X], [X]), MORE, missed=Cause.OP_NOT_COUNTED)


CASES = (*products(), *elementwise(), *formulas_of_0_1())

FAMILIES = {"onnx_opcounter": (RELEASES, CASES)}
