"""onnx-tool's profiles by hand, from onnx_tool/node.py of 1.0.1.

Its costs: 1 for a multiply-add, an add, a product and a comparison, 4 for a division, 24 for a square root, 32 for an exponential
or a power, 39 for a sine or a cosine, 43 for a logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("0.8.5", "1.0.1")
BEFORE, NOW = RELEASES[:1], RELEASES[1:]

X = (2, 3, 4)
O = 24  # noqa: E741


def node(name: str, inputs: list[Shape], outputs: list[Shape], **attrs: Any) -> Op:
    """An operator with all of its inputs given, unless ``given`` says otherwise."""
    return op(f"onnx.{name}", inputs, outputs, **{"given": len(inputs), **attrs})


EACH: dict[str, tuple[int, Work]] = {
    **dict.fromkeys(("Add", "Sub", "Max", "Ceil", "Mod", "Hardmax", "CumSum"), (1, Work(add=1))),
    "Mul": (1, Work(mul=1)),
    **dict.fromkeys(
        ("Min", "Neg", "Abs", "Sign", "Relu", "Less", "LessOrEqual", "Round", "Not", "And"), (1, Work(cmp=1))
    ),
    **dict.fromkeys(("Or", "Xor", "NonZero", "Equal", "Floor", "Greater", "GreaterOrEqual"), (1, Work(cmp=1))),
    "Div": (4, Work(div=4)),
    "Reciprocal": (4, Work(div=4)),
    "Exp": (32, Work(special=32)),
    "Sigmoid": (32, Work(special=32)),  # an exponential and nothing else
    "Pow": (32, Work(special=32)),
    "Log": (43, Work(special=43)),
    "Sqrt": (24, Work(special=24)),
    "Sin": (39, Work(special=39)),
    "Cos": (39, Work(special=39)),
    "Softmax": (32 + 4, Work(special=32, div=4)),
    "LogSoftmax": (32 + 4 + 1 + 43, Work(special=32 + 43, div=4, add=1)),
    "Softplus": (32 + 1 + 43, Work(special=32 + 43, add=1)),
    "Tanh": (2 * (32 + 2 + 4), Work(special=64, add=4, div=8)),  # its ratio is 2
    "Atan": (2 * (24 + 3 + 1 + 4), Work(special=48, mul=8, div=8)),
    "InstanceNormalization": (1 + 1 + 1 + 4, Work(add=2, mul=1, div=4)),
    "LpNormalization": (32 + 1, Work(special=32, add=1)),
    "BatchNormalization": (1 + 24 + 4 + 1 + 1, Work(add=2, special=24, div=4, mul=1)),
    "HardSigmoid": (1 + 1 + 2, Work(mul=1, add=1, cmp=2)),
    "HardSwish": (2 + 1 + 2, Work(mul=2, add=1, cmp=2)),
    "Elu": (1 + 32 + 1 + 1, Work(cmp=1, special=32, add=1, mul=1)),
    "Gelu": (32 + 2, Work(special=32, mul=2)),
    "PRelu": (1 + 1, Work(cmp=1, mul=1)),
    "LeakyRelu": (1 + 1, Work(cmp=1, mul=1)),
    "Clip": (2, Work(cmp=2)),
    "DequantizeLinear": (1 + 1, Work(mul=1, add=1)),
    "QuantizeLinear": (1 + 1, Work(mul=1, add=1)),
}
"""By operator: the cost of one element of the output, and its components."""


def elementwise() -> Iterator[Case]:
    """Whatever is broadcast; the volume of a scalar is 0 (tensor.py:145)."""
    for name, (cost, work) in EACH.items():
        yield Case(node(name, [(4,), X], [X]), RELEASES, cost * O, work * O)
        yield Case(node(name, [(), ()], [()]), RELEASES, 0, Work())
        yield Case(node(name, [X], [(2, None)]), RELEASES, missed=Cause.SHAPE_UNKNOWN)
    yield Case(node("Sum", [X, X, X], [X]), RELEASES, 2 * O, Work(add=2 * O))
    lrn = Work(div=4, special=32, add=1, mul=5)
    yield Case(node("LRN", [X], [X], size=5), RELEASES, (4 + 32 + 1 + 5) * O, lrn * O)


def products() -> Iterator[Case]:
    """(2, 3) x (3, 5): 30 multiply-adds, and 10 adds for a bias."""
    a, b, y = (2, 3), (3, 5), (2, 5)
    yield Case(node("Gemm", [a, b], [y]), RELEASES, 30, Work(mac=30))
    yield Case(node("Gemm", [a, (5, 3), (5,)], [y], transB=1), RELEASES, 30 + 10, Work(mac=30, add=10))
    yield Case(node("MatMul", [(4, *a), b], [(4, *y)]), RELEASES, 4 * 30, Work(mac=4 * 30))
    yield Case(node("MatMulInteger", [a, b, ()], [y], given=3), RELEASES, 30 + 10, Work(mac=30, add=10))
    quantized = [a, (), (), b, (), (), (), ()]
    yield Case(node("QLinearMatMul", [*quantized], [y]), RELEASES, 2 * 3 * 5, Work(mac=2 * 3 * 5))
    einsum = node("Einsum", [(2, 3, 4), (4, 5)], [(2, 5)], equation="abc, cd -> ad")  # b is summed once, c with d
    yield Case(einsum, RELEASES, 2 * 3 * 4 * 5, Work(mac=2 * 3 * 4 * 5))


def convolutions() -> Iterator[Case]:
    """2 x 6 channels x (4, 5) positions, each from 3 channels of 3 x 2 taps."""
    image, kernel, out = (2, 3, 6, 6), (6, 3, 3, 2), (2, 6, 4, 5)
    o = 2 * 6 * 4 * 5
    yield Case(node("Conv", [image, kernel], [out]), RELEASES, o * 18, Work(mac=o * 18))
    yield Case(node("Conv", [image, kernel, (6,)], [out]), RELEASES, o * 18 + o, Work(mac=o * 18, add=o))
    yield Case(node("ConvInteger", [image, kernel], [out]), RELEASES, o * 18, Work(mac=o * 18))
    quantized = [image, (), (), kernel, (), (), (), ()]
    yield Case(node("QLinearConv", [*quantized], [out]), RELEASES, o * 18, Work(mac=o * 18))
    yield Case(node("QLinearConv", [*quantized, (6,)], [out]), RELEASES, o * 18 + o, Work(mac=o * 18, add=o))
    # 3 channels at 4 x 4 to 5 at 8 x 8 by 2 x 2: each input reaches 5 * 4 outputs, and it takes each output for an input.
    transposed = node("ConvTranspose", [(1, 3, 4, 4), (3, 5, 2, 2)], [(1, 5, 8, 8)])
    yield Case(transposed, RELEASES, 5 * 64 * 20, Work(mac=5 * 64 * 20))


def others() -> Iterator[Case]:
    """Pools, reductions, a norm and interpolations."""
    image, out = (2, 3, 8, 6), (2, 3, 4, 3)
    o = 2 * 3 * 4 * 3
    pool = {"kernel_shape": [2, 3]}
    yield Case(node("MaxPool", [image], [out], **pool), RELEASES, 6 * o, Work(cmp=6 * o))
    yield Case(node("AveragePool", [image], [out], **pool), RELEASES, 6 * o, Work(add=6 * o))
    # Of a kernel with three axes, the first.
    cube = node("MaxPool", [(1, 2, 4, 4, 4)], [(1, 2, 2, 2, 2)], kernel_shape=[3, 2, 2])
    yield Case(cube, RELEASES, 3 * 16, Work(cmp=3 * 16))
    n = 2 * 3 * 8 * 6
    yield Case(node("GlobalAveragePool", [image], [(2, 3, 1, 1)]), RELEASES, n + 4 * 6, Work(add=n, div=4 * 6))
    for name, work in (
        ("ReduceMean", Work(add=n)), ("ReduceSum", Work(add=n)), ("ReduceProd", Work(mul=n)), ("ReduceMin", Work(cmp=n)),
        ("ReduceMax", Work(cmp=n)),
    ):  # fmt: skip
        yield Case(node(name, [image], [(2, 3)]), RELEASES, n, work)
    yield Case(node("ReduceL2", [image], [(2, 3)]), RELEASES, 25 * n, Work(add=n, special=24 * n))
    norm = Work(mul=3 * 24, add=4 * 24) + Work(add=6, special=24 * 6, div=4 * 6)
    yield Case(node("LayerNormalization", [X, (4,)], [X], axis=-1), RELEASES, 7 * 24 + 29 * 6, norm)
    for name in ("Resize", "Upsample"):
        for mode, taps in (("nearest", 0), ("linear", 4), ("cubic", 8)):
            yield Case(node(name, [out], [image], mode=mode), RELEASES, taps * n, Work(mul=taps * n))


def recurrent() -> Iterator[Case]:
    """7 steps of a batch of 2 from 5 features to 3 states in two directions; the states of one direction alone are counted."""
    x, states = (7, 2, 5), 7 * 2 * 3
    gru = [x, (2, 9, 5), (2, 9, 3), (2, 18)]
    macs, bias = 7 * 2 * 2 * 9 * (5 + 3), 7 * 2 * 2 * 18
    each = Work(add=3 + 2 + 2, special=3 * 32, div=4, mul=3)
    total = macs + bias + states * (3 + 2 * 32 + (32 + 2 + 4) + 5)
    yield Case(node("GRU", [*gru], [x]), NOW, total, Work(mac=macs, add=bias) + each * states)
    yield Case(node("GRU", [*gru[:3]], [x], B=None), NOW, total - bias, Work(mac=macs) + each * states)
    yield Case(node("GRU", [*gru], [x]), BEFORE, (macs + bias) // 7, Work(mac=macs // 7, add=bias // 7))
    lstm = [x, (2, 12, 5), (2, 12, 3), (2, 24)]
    macs, bias = 7 * 2 * 2 * 12 * (5 + 3), 7 * 2 * 2 * 24
    each = Work(add=4 + 4 + 1, special=5 * 32, div=8, mul=3)
    total = macs + bias + states * (4 + 3 * 32 + 2 * (32 + 2 + 4) + 4)
    yield Case(node("LSTM", [*lstm], [x]), NOW, total, Work(mac=macs, add=bias) + each * states)
    yield Case(node("LSTM", [*lstm], [x]), BEFORE, (macs + bias) // 7, Work(mac=macs // 7, add=bias // 7))


CASES = (*elementwise(), *products(), *convolutions(), *others(), *recurrent())

FAMILIES = {"onnx_tool": (RELEASES, CASES)}
