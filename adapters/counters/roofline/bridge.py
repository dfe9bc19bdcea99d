"""Bridge from the ledger of a counter that goes through a jaxpr once to the JAX trace, equation by equation.

What ran in a loop that the counter enters it counted once; what ran in a program that it does not enter is left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from ....core.causes import Cause
from ....core.records import DEAD, LIVE, TRACED_ONLY, Op, Trace
from ....work import COMPONENTS, ZERO, is_integer_op, signature
from .. import SUM
from ..bridge import Bridge, Item, View, known_work, make_item, other_ops, unknown_gap, unknown_of, unmet
from ..rulebook import NotCounted, RuleBook, WhyNot, apply
from . import NOT_ENTERED, PRODUCTS_ONLY
from .rules import BOOK, CONVOLUTION, PRODUCT, why_not

REST = tuple(name for name in COMPONENTS if name != "mac")
LEFT_OUT = "it ran in a program that the counter does not enter"
OF_THE_WALK = (NOT_ENTERED, "equations", "untaken")
"""Attributes that say how an op was met, not what it computes (adapters/jax/trace.py)."""
Key = tuple[str, Hashable]
"""A layer, and what an equation computes."""
NEVER_RAN = {DEAD: Cause.DEAD_OP, TRACED_ONLY: Cause.UNTAKEN_BRANCH}
"""Why an equation that counts did not run, by its role; one of ``TRACED_ONLY`` is in a loop of no turn."""


def bridge_equations(view: View, trace: Trace, book: RuleBook, why_not: WhyNot, only: str = "") -> Bridge:
    """Items of every equation that the counter met, and of what ran where it does not look. ``only`` is the one op that it
    counts, '' for all that have a rule. Equations of one layer, of the same shapes and parameters, are one here: a counter knows
    no phases of a step."""
    ran = _group(op for op in trace.ops if not is_integer_op(op))
    inside = _group(one.op for one in view.sightings if NOT_ENTERED in one.op.attrs)
    items, seen = list[Item](), set[Key]()
    for role in (LIVE, *NEVER_RAN):
        met = _group(one.op for one in view.sightings if one.role == role and NOT_ENTERED not in one.op.attrs)
        seen |= set(met) if role == LIVE else set()
        for key, ops in met.items():
            rule = None if only and ops[0].op != only else book.of(ops[0], view.versions)
            counted, missed = apply(rule, ops[0], why_not)
            times = 0 if missed else _calls(ops)
            item = make_item(ops[0], None if missed else rule, counted=counted, seen=times, entry=SUM)
            if role == LIVE and key in ran:
                items += _with_work(item, ran[key], _calls(ran[key]) - _calls(inside.get(key, ())), missed)
            elif counted:
                items.append(_without_work(item, ops[0], role))
    for key, ops in ran.items():
        work, calls = known_work(ops[0]), _calls(inside.get(key, () if key in seen else ops))
        if work and calls:
            cause, reason = (Cause.BODY_NOT_ENTERED, LEFT_OUT) if key in inside else (None, "")
            gap = "" if cause else other_ops(view.counter, ops[0].layer, f"{ops[0].op} {ops[0].id} was not met")
            items.append(unmet(ops[0]._replace(calls=calls), work, cause, reason, gap=gap))
    return Bridge(tuple(items))


def _group(ops: Iterable[Op]) -> dict[Key, list[Op]]:
    """Records of the same equation, in whichever phase."""
    found: dict[Key, list[Op]] = {}
    for op in ops:
        attrs = {name: value for name, value in op.attrs.items() if name not in OF_THE_WALK}
        found.setdefault((op.layer, signature(op._replace(attrs=dict(sorted(attrs.items()))))), []).append(op)
    return found


def _calls(ops: Iterable[Op]) -> int:
    return sum(op.calls for op in ops)


def _with_work(item: Item, ops: Sequence[Op], times: int, missed: NotCounted | None) -> list[Item]:
    """The items of an equation that ran so often where the counter looks; of a convolution, those with padding apart."""
    op, work = ops[0], known_work(ops[0]) or ZERO
    made = replace(
        item, ran=work, times=times, ops=tuple(each.id for each in ops), unknown=unknown_of([op]),
        gap="" if missed else unknown_gap([op]), cause=missed.cause if missed else None,
        formula=missed.reason if missed else item.formula,
    )  # fmt: skip
    if missed or op.op != CONVOLUTION or made.seen != times or item.counted.mac >= work.mac:
        return [made]
    rest = unmet(op._replace(calls=times), work.only(REST), None, "", only=REST)
    return [replace(made, ran=work.only(("mac",)), only=("mac",), cause=Cause.PADDING_NOT_COUNTED), rest]


def _without_work(item: Item, op: Op, role: str) -> Item:
    """The item of an equation that counts, and is no work of the trace."""
    cause = NEVER_RAN.get(role, Cause.INTEGER_OP if is_integer_op(op) else None)
    return replace(item, cause=cause, gap="" if cause else f"{op.op} is counted, but did not run")


def bridge(view: View, trace: Trace) -> Bridge:
    """The bridge of roofline."""
    return bridge_equations(view, trace, BOOK, why_not, PRODUCT if view.counter == PRODUCTS_ONLY else "")
