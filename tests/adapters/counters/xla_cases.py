"""XLA's cost analysis by hand, from xla/service/hlo_cost_analysis.cc: 2 for a multiply-add, 1 for any other element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("0.10.2",)

X = (2, 3, 4)
O = 24  # noqa: E741

EACH: dict[str, Work] = {
    **dict.fromkeys(("add", "subtract", "negate", "real", "imag", "complex"), Work(add=O)),
    "multiply": Work(mul=O),
    **dict.fromkeys(("divide", "remainder"), Work(div=O)),
    **dict.fromkeys(["abs", "sign", "maximum", "minimum", "compare", "is-finite", "clamp", "select"], Work(cmp=O)),
    **dict.fromkeys(
        ["and", "or", "xor", "not", "shift-left", "shift-right-arithmetic", "shift-right-logical"], Work(cmp=O)
    ),
    **dict.fromkeys(["popcnt", "count-leading-zeros"], Work(cmp=O)),
    **dict.fromkeys(["floor", "ceil", "round-nearest-afz", "round-nearest-even", "convert"], Work(special=O)),
    **dict.fromkeys(["bitcast-convert", "reduce-precision", "stochastic-convert"], Work(special=O)),
}
APART = """exponential exponential-minus-one log log-plus-one logistic power sqrt cbrt rsqrt tanh sine cosine tan atan2 erf rng
rng-bit-generator"""


def case(name: str, inputs: list[Shape], outputs: list[Shape], work: Work, **attrs: Any) -> Case:
    """An instruction, and what it adds."""
    total = 2 * work.mac + work.add + work.mul + work.div + work.cmp + work.special
    return Case(instruction(name, inputs, outputs, **attrs), RELEASES, total, work)


def instruction(name: str, inputs: list[Shape], outputs: list[Shape], **attrs: Any) -> Op:
    """An instruction of HLO."""
    return op(f"hlo.{name}", inputs, outputs, **attrs)


def window(size: list[int], stride: int = 1, pad: int = 0, dilate: int = 1) -> dict[str, Any]:
    """The same along every axis; ``dilate`` is of the input."""
    every = len(size)
    return {
        "size": size, "stride": [stride] * every, "pad": [[pad, pad]] * every, "lhs_dilate": [dilate] * every,
        "rhs_dilate": [1] * every,
    }  # fmt: skip


def convolution(rows: int, out: int, inside: int, **attrs: Any) -> Case:
    """A square image of 2 channels, 4 filters of 3 x 3; ``inside`` are the products along one axis."""
    channels_last = {"dimension_numbers": [[0, 3, 1, 2], [3, 2, 0, 1], [0, 3, 1, 2]]}
    given = {"feature_group_count": 1, "batch_group_count": 1, **channels_last, "window": window([3, 3], **attrs)}
    shapes: list[Shape] = [(1, rows, rows, 2), (3, 3, 2, 4)]
    return case("convolution", shapes, [(1, out, out, 4)], Work(mac=2 * 4 * inside**2), **given)


def _cases() -> Iterator[Case]:
    for name, work in EACH.items():
        yield case(name, [X, X], [X], work)
    for name in APART.split():
        yield Case(instruction(name, [X], [X]), RELEASES, missed=Cause.OP_NOT_COUNTED)
    yield case("dot", [X, (4, 5)], [(2, 3, 5)], Work(mac=2 * 3 * 5 * 4), contracting=[2])
    yield convolution(5, 5, 3 * 5 - 2, pad=1)  # the first and the last output lack a tap
    yield convolution(5, 2, 3 * 2, stride=2)
    yield convolution(3, 7, 3 * 3, pad=2, dilate=2)  # every element of the input meets each tap once
    yield case("reduce", [X, ()], [(2, 3)], Work(add=24 - 6), to_apply=["add"])
    yield case("reduce-window", [(6,), ()], [(4,)], Work(cmp=4 * 2), to_apply=["maximum"], window=window([3]))
    yield case("reduce-window", [(5,), ()], [(5,)], Work(add=1 + 4), to_apply=["add"], window=window([9], pad=4))
    scattered = {"select": ["compare"], "scatter": ["add"], "window": window([2], stride=2)}
    yield case("select-and-scatter", [(6,), (3,), ()], [(6,)], Work(cmp=3 * (2 - 1), add=3), **scattered)
    yield case("scatter", [(10,), (3, 1), (3,)], [(10,)], Work(add=3), to_apply=["add"])
    yield case("map", [(4,)], [(4,)], Work(mul=4), to_apply=["multiply"])
    yield case("sort", [X], [X], Work(cmp=24 * 5), to_apply=["compare"])
    yield case("fft", [(2, 8)], [(2, 8)], Work(mac=4 * 16 * 3), fft_length=[8])
    yield case("triangular-solve", [(4, 4), (4, 3)], [(4, 3)], Work(mac=4 * 12))
    yield case("cholesky", [(4, 4)], [(4, 4)], Work(add=4 * 16 // 3))
    for name in ("all-reduce", "all-reduce-start"):
        yield case(name, [X], [X], Work(add=O), to_apply=["add"])
    yield case("custom-call", [X], [X], Work(add=-1))
    yield case("(float32)", [], [], Work(add=-2), addends=[2**24, 1, 1])  # each of the ones is lost


FAMILIES = {"xla": (RELEASES, list(_cases()))}
