"""Rules of jax.experimental.roofline: what each primitive of a jaxpr adds to ``unfused_flops``.

Source: R = jax/experimental/roofline/rooflines.py (lines of 0.10.2). A multiply-add is 2 FLOPs, an element of an
elementwise result 1, whatever its type. Of these, ``flops`` has ``dot_general`` alone. ``O``: elements of the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ....core.records import Op
from ....work import Work, prod
from ...jax.unpadded_convolution import convolution_macs
from ..rulebook import RuleBook, dims, size
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"R": "jax/experimental/roofline/rooflines.py"})
PRODUCT = "lax.dot_general"
CONVOLUTION = "lax.conv_general_dilated"
UNARY, BINARY = "R:73", "R:126"
ELEMENTS: Mapping[tuple[str, str], Work] = {
    (BINARY, "add sub"): Work(add=1),
    (BINARY, "mul"): Work(mul=1),
    (BINARY, "div rem"): Work(div=1),
    (BINARY, "and or xor gt lt ge le eq ne min max"): Work(cmp=1),
    (UNARY, "neg conj imag real"): Work(add=1),
    (UNARY, "integer_pow square"): Work(mul=1),
    (UNARY, "abs is_finite not sign"): Work(cmp=1),
    (
        UNARY,
        "acos asin atan cbrt ceil cos cosh exp expm1 floor log log1p logistic round rsqrt sin sinh sqrt tan "
        "bessel_i0e bessel_i1e digamma erf_inv erf erfc lgamma",
    ): Work(special=1),
    ("R:776", "select_n"): Work(cmp=1),
}
"""The functions of elementwise primitives, these, and what one element adds."""


def each_element(op: Op, work: Work) -> Work:
    """This work for every element of the output."""
    return work * size(op.outputs[0].shape)


def elements_along(op: Op, work: Work) -> Work:
    """This work for the elements along one axis: the others are left out."""
    return work * (dims(op.inputs[0].shape)[op.attrs["axis"]])


def each_update(op: Op, work: Work) -> Work:
    """This work for every element that is scattered."""
    return work * size(op.inputs[2].shape)


for (_source, _names), _work in ELEMENTS.items():
    BOOK.rule(*(f"lax.{name}" for name in _names.split()), source=_source, formula="O")(
        partial(each_element, work=_work)
    )
BOOK.rule("lax.exp2", "lax.log2", source=UNARY, formula="O", versions=">=0.11.2")(
    partial(each_element, work=Work(special=1))
)
for _name, _work in (("sum", Work(add=1)), ("prod", Work(mul=1)), ("max", Work(cmp=1)), ("min", Work(cmp=1))):
    BOOK.rule(f"lax.cum{_name}", source="R:163", formula="the size of the axis")(partial(elements_along, work=_work))
BOOK.rule("lax.cumlogsumexp", source="R:185", formula="2 x the size of the axis")(
    partial(elements_along, work=Work(special=1, add=1))
)
for _name, _work in (
    ("add", Work(add=1)),
    ("sub", Work(add=1)),
    ("mul", Work(mul=1)),
    ("max", Work(cmp=1)),
    ("min", Work(cmp=1)),
):
    BOOK.rule(f"lax.scatter-{_name}", source="R:564", formula="1 per element of the updates")(
        partial(each_update, work=_work)
    )


@BOOK.rule(PRODUCT, source="R:209", formula="2 N M / (contracted x batch sizes), in floating point")
def _dot(op: Op) -> Work:
    lhs, rhs = (dims(tensor.shape) for tensor in op.inputs[:2])
    (contracted, _), (batch, _) = op.attrs["dimension_numbers"]
    flops = 2 * prod(lhs) * prod(rhs) / prod([lhs[axis] for axis in contracted]) / prod([lhs[axis] for axis in batch])
    return Work(mac=int(flops) // 2, add=int(flops) % 2)


@BOOK.rule(
    CONVOLUTION,
    source="R:375",
    formula="2 per product with an element of the input that is there",
)
def _convolution(op: Op) -> Work:
    attrs, shapes = op.attrs, [dims(tensor.shape) for tensor in (*op.inputs[:2], op.outputs[0])]
    places = attrs["dimension_numbers"]
    dilations = list(zip(attrs["lhs_dilation"], attrs["rhs_dilation"], strict=True))
    groups = (attrs["feature_group_count"], attrs["batch_group_count"])
    return Work(mac=convolution_macs(shapes, places, attrs["padding"], attrs["window_strides"], dilations, groups))


@BOOK.rule("lax.reduce_sum", source="R:755", formula="(n - 1) O of n elements each")
def _reduce_sum(op: Op) -> Work:
    sizes = dims(op.inputs[0].shape)
    return Work(add=(prod([sizes[axis] for axis in op.attrs["axes"]]) - 1) * size(op.outputs[0].shape))


@BOOK.rule("lax.gather", source="R:513", formula="4 I + O of I indices if it fills or drops, or 0")
def _gather(op: Op) -> Work:
    fills = op.attrs["mode"] == "FILL_OR_DROP"
    return Work(cmp=4 * size(op.inputs[1].shape) + size(op.outputs[0].shape)) if fills else Work()


def why_not(op: Op) -> str:
    """The reason why a primitive without a rule is not counted."""
    return f"roofline counts 0 for {op.op.partition('.')[2]} here"
