"""Rules of pl.estimate_cost: what each primitive of a jaxpr adds to ``flops``.

Source: P = jax/_src/pallas/cost_estimate.py (lines of 0.10.2). A multiply-add is 2 FLOPs, an element of another
result 1, whatever its type. ``exp`` and the like have a total of their own, ``transcendentals``. ``O``: elements of the output.
"""

from __future__ import annotations

from functools import partial

from ....core.records import Op
from ....work import Work, prod
from ..roofline.bridge import bridge_equations
from ..roofline.rules import PRODUCT, each_element
from ..rulebook import RuleBook, dims
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"P": "jax/_src/pallas/cost_estimate.py"})
TRANSCENDENTAL = ("cos", "sin", "tan", "sinh", "cosh", "tanh", "acos", "asin", "atan", "exp", "log", "logistic", "sqrt")

for _source, _names, _work in (
    ("P:112", "add sub", Work(add=1)),
    ("P:112", "mul", Work(mul=1)),
    ("P:112", "div", Work(div=1)),
    ("P:112", "min max or and xor", Work(cmp=1)),
    ("P:135", "neg", Work(add=1)),
    ("P:135", "floor ceil round", Work(special=1)),
    ("P:135", "not", Work(cmp=1)),
):
    BOOK.rule(*(f"lax.{name}" for name in _names.split()), source=_source, formula="O")(
        partial(each_element, work=_work)
    )


@BOOK.rule("lax.integer_pow", source="P:179", formula="(floor(lg |y|) + ones of |y| in binary + (y < 0)) O")
def _integer_pow(op: Op) -> Work:
    """A negative power stops it before JAX 0.11.1, which adds the reciprocal."""
    y = op.attrs["y"]
    return each_element(op, Work(mul=0 if y in (0, 1) else y.bit_length() - 1 + y.bit_count(), div=int(y < 0)))


@BOOK.rule(PRODUCT, source="P:197", formula="2 K O, K the contracted sizes")
def _dot(op: Op) -> Work:
    sizes, (contracted, _) = dims(op.inputs[0].shape), op.attrs["dimension_numbers"][0]
    return each_element(op, Work(mac=prod([sizes[axis] for axis in contracted])))


def why_not(op: Op) -> str:
    """The reason why a primitive without a rule is not counted."""
    name = op.op.partition(".")[2]
    apart = "counts it in a total of its own, transcendentals" if name in TRANSCENDENTAL else f"has no rule for {name}"
    return f"pl.estimate_cost {apart}"


bridge = partial(bridge_equations, book=BOOK, why_not=why_not)
