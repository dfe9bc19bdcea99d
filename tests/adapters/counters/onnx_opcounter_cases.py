"""onnx-opcounter's calculators by hand, from onnx_opcounter/onnx_opcounter.py of 0.0.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("0.0.4",)

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
    yield Case(node("Add", [(4,), X], [X]), RELEASES, 4, Work(add=4))
    yield Case(node("Add", [X, (4,)], [X]), RELEASES, N, Work(add=N))
    yield Case(node("Add", [(), ()], [()]), RELEASES, 1, Work(add=1))
    wide = (2, 3, 8, 8)
    for name in ("Upsample", "Resize"):
        yield Case(node(name, [X], [wide], mode="nearest"), RELEASES, 0, Work())
        yield Case(node(name, [X], [wide]), RELEASES, 0, Work())
        yield Case(node(name, [X], [wide], mode="linear"), RELEASES, 11 * 4 * N, Work(mul=11 * 4 * N))
    for name in ("Mul", "Sigmoid", "Softmax", "Concat", "MaxPool"):
        yield Case(node(name, [X], [(2, 3, 2, 2)]), RELEASES, 24, Work(add=24))
    yield Case(node("GRU", [(7, 2, 5), (1, 9, 5), (1, 9, 3)], [(7, 1, 2, 3)]), RELEASES, 7 * 2 * 3, Work(add=7 * 2 * 3))
    yield Case(node("Mul", [X], [(2, None)]), RELEASES, missed=Cause.SHAPE_UNKNOWN)
    for name in NOTHING:
        yield Case(node(name, [X], [X]), RELEASES, missed=Cause.OP_NOT_COUNTED)


CASES = (*products(), *elementwise())

FAMILIES = {"onnx_opcounter": (RELEASES, CASES)}
