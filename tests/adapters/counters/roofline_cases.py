"""jax.experimental.roofline by hand, from jax/experimental/roofline/rooflines.py of JAX 0.10.2 and 0.12.0.1: 2 for a
multiply-add, 1 for any other element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

OLDER, NEWER = ("0.10.2",), ("0.12.0.1",)
RELEASES = OLDER + NEWER
X = (2, 3, 4)
O = 24  # noqa: E741
ALONG = 3
BOTH = {
    **dict.fromkeys(("add", "sub", "neg"), Work(add=O)),
    "mul": Work(mul=O),
    "div": Work(div=O),
    **dict.fromkeys(("min", "max", "or", "and", "xor", "not"), Work(cmp=O)),
    **dict.fromkeys(("floor", "ceil", "round"), Work(special=O)),
}
SPECIAL = """acos asin atan cbrt cos cosh exp expm1 log log1p logistic rsqrt sin sinh sqrt tan bessel_i0e
bessel_i1e digamma erf_inv erf erfc lgamma"""
ROOFLINE = {
    **BOTH,
    **dict.fromkeys(("conj", "imag", "real"), Work(add=O)),
    **dict.fromkeys(("square", "integer_pow"), Work(mul=O)),
    "rem": Work(div=O),
    **dict.fromkeys(("gt", "lt", "ge", "le", "eq", "ne", "abs", "is_finite", "sign", "select_n"), Work(cmp=O)),
    **dict.fromkeys(SPECIAL.split(), Work(special=O)),
}
STEPS = {"add": Work(add=1), "sub": Work(add=1), "mul": Work(mul=1), "max": Work(cmp=1), "min": Work(cmp=1)}
CUMULATIVE = {"sum": Work(add=1), "prod": Work(mul=1), "max": Work(cmp=1), "min": Work(cmp=1)}


def case(name: str, inputs: list[Shape], outputs: list[Shape], work: Work, **attrs: Any) -> Case:
    """An equation, and what it adds."""
    total = 2 * work.mac + work.add + work.mul + work.div + work.cmp + work.special
    return Case(op(f"lax.{name}", inputs, outputs, **attrs), RELEASES, total, work)


def products() -> Iterator[Case]:
    """(2, 3, 4) by (2, 4, 5), a batch of 2."""
    numbers = [[[2], [1]], [[0], [0]]]
    yield case("dot_general", [X, (2, 4, 5)], [(2, 3, 5)], Work(mac=2 * 3 * 5 * 4), dimension_numbers=numbers)


def convolution(rows: int, out: int, inside: int, groups: int = 1, **attrs: Any) -> Case:
    """A square image of 2 channels, 4 filters of 3 x 3; ``inside`` are the products along one axis."""
    given = {
        "dimension_numbers": [[0, 3, 1, 2], [3, 2, 0, 1], [0, 3, 1, 2]], "window_strides": [1, 1], "padding": [[0, 0]] * 2,
        "lhs_dilation": [1, 1], "rhs_dilation": [1, 1], "batch_group_count": 1, "feature_group_count": groups,
    }  # fmt: skip
    shapes: list[Shape] = [(1, rows, rows, 2), (3, 3, 2 // groups, 4)]
    return case(
        "conv_general_dilated", shapes, [(1, out, out, 4)], Work(mac=2 // groups * 4 * inside**2), **{**given, **attrs}
    )


def _roofline() -> Iterator[Case]:
    for name, work in ROOFLINE.items():
        yield case(name, [X, X], [X], work)
    for name in ("exp2", "log2"):
        yield Case(op(f"lax.{name}", [X], [X]), OLDER)
        yield Case(op(f"lax.{name}", [X], [X]), NEWER, O, Work(special=O))
    for name, work in CUMULATIVE.items():
        yield case(f"cum{name}", [X], [X], work * ALONG, axis=1)
    yield case("cumlogsumexp", [X], [X], Work(special=ALONG, add=ALONG), axis=1)
    for name, work in STEPS.items():
        yield case(f"scatter-{name}", [(10,), (6, 1), (6,)], [(10,)], work * 6)
    yield from products()
    yield convolution(5, 5, 3 * 5 - 2, padding=[[1, 1]] * 2)  # the first and the last output lack a tap
    yield convolution(5, 2, 3 * 2, window_strides=[2, 2], groups=2)
    yield convolution(3, 7, 3 * 3, padding=[[2, 2]] * 2, lhs_dilation=[2, 2])  # every element meets each tap once
    yield case("reduce_sum", [X], [(2,)], Work(add=2 * (3 * 4 - 1)), axes=[1, 2])
    yield case("gather", [X, (5, 1)], [(5, 3, 4)], Work(cmp=4 * 5 + 60), mode="FILL_OR_DROP")
    yield case("gather", [X, (5, 1)], [(5, 3, 4)], Work(), mode="CLIP")


FAMILIES = {"roofline": (RELEASES, list(_roofline()))}
