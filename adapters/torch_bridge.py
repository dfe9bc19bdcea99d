"""From the ledger of a counter that works on ATen ops to the PyTorch trace, module by module.

The counter may see a module's work cut into other ops than the trace (a GRU step by step, a linear layer as one node).
Each op it saw has a work of its own by the same formulas; module by module these must add up to the work that ran,
component by component.  Where a component does not add up, and the counter counts none of it there, the trace's own ops
are taken: the counter left them out, however it saw them.  Where it does count some, the rest is a gap and stays in the
residual.

Or the counter may see one op where the trace has those of several modules (an encoder layer in inference mode): if it has
no rule for that one, it left out all that ran inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..causes import Cause
from ..records import Op, Sighting, Trace
from ..work import COMPONENTS, ZERO, Work, is_integer_op
from .bridge import Bridge, Item, View, known_work, make_item
from .rulebook import Rule, RuleBook, WhyNot, apply


@dataclass(frozen=True, slots=True)
class _Counter:
    """A counter's rules in its version, and why it counts nothing of an op without a rule."""

    book: RuleBook
    versions: Mapping[str, str]
    why_not: WhyNot

    def rule(self, op: Op) -> Rule | None:
        return self.book.find(op.op, self.versions)


def bridge_ops(view: View, trace: Trace, book: RuleBook, why_not: WhyNot) -> Bridge:
    """Items of a counter with one rule per ATen op; ``why_not`` says why an op without a rule is not counted."""
    counter = _Counter(book, view.versions, why_not)
    ran = _by_layer(trace.ops)
    seen = _by_layer(s.op for s in view.sightings)
    fused = _fused(view, trace, counter)
    items: dict[str, list[Item]] = {}
    for sighting in view.sightings:
        items.setdefault(sighting.op.layer, []).append(_item(sighting, counter))
    found: list[Item] = []
    for layer in sorted({*ran, *items}):
        mine = items.get(layer, [])
        missing = _sum(ran.get(layer, ())) - _sum(seen.get(layer, ()))
        inside = None if layer in seen else _around(layer, fused)
        found += _balance(layer, mine, ran.get(layer, []), missing, counter, inside) if missing else mine
    return Bridge(tuple(found))


def _fused(view: View, trace: Trace, counter: _Counter) -> dict[str, Op]:
    """By module, an op that the counter saw and has no rule for, and that the trace has in parts only."""
    ran = {op.op for op in trace.ops}
    ops = (s.op for s in view.sightings if s.op.op not in ran)
    return {op.layer: op for op in ops if counter.rule(op) is None and known_work(op)}


def _around(layer: str, fused: Mapping[str, Op]) -> Op | None:
    """The nearest of these ops in a module around this one."""
    parts = layer.split(".")
    found = (fused.get(".".join(parts[:end])) for end in range(len(parts) - 1, -1, -1))
    return next((op for op in found if op is not None), None)


def _by_layer(ops: Iterable[Op]) -> dict[str, list[Op]]:
    found: dict[str, list[Op]] = {}
    for op in ops:
        found.setdefault(op.layer, []).append(op)
    return found


def _sum(ops: Iterable[Op]) -> Work:
    total = ZERO
    for op in ops:
        total = total + (known_work(op) or ZERO) * op.calls
    return total


def _item(sighting: Sighting, counter: _Counter) -> Item:
    op = sighting.op
    rule = counter.rule(op)
    counted, missed = apply(rule, op, counter.why_not)
    work = known_work(op)
    cause = missed.cause if missed else None
    if counted and is_integer_op(op):
        cause = Cause.INTEGER_OP
    return make_item(
        op,
        rule,
        layer=op.layer,
        op=op.op,
        counted=counted,
        seen=0 if missed else op.calls,
        ran=work or ZERO,
        times=op.calls,
        cause=cause,
        entry=sighting.entry,
        reason=missed.reason if missed else "",
        gap="" if work is not None else f"the work of {op.op} is unknown",
    )


def _balance(
    layer: str, items: list[Item], ops: list[Op], missing: Work, counter: _Counter, inside: Op | None
) -> list[Item]:
    """A module whose seen ops do not add up to the work that ran: settle it component by component.

    ``inside`` is the op of another module in which all of this one ran, as the counter saw it.
    """
    counted = ZERO
    for item in items:
        counted = counted + item.counted * item.seen
    left_out = {name for name, count in missing.items() if count and not getattr(counted, name)}
    if "accumulators" in left_out and counted.mac and missing.mac:
        left_out.discard("accumulators")  # they go with the multiply-adds that are in question
    others = tuple(name for name in COMPONENTS if name not in left_out)
    kept = [replace(item, ran=_without(item.ran, left_out), only=others) for item in items]
    opaque = next((op for item in items for op in item.sightings if known_work(op) is None), None)
    kept += [item for op in ops for item in _left_out(op, left_out, counter, inside, opaque)]
    rest = _without(missing, left_out)
    if rest:
        parts = ", ".join(f"{name} {count:+,}" for name, count in rest.items() if count)
        reason = f"the ops this counter saw and the work that ran differ by {parts}"
        kept.append(make_item(None, None, layer=layer, op="", ran=rest, times=1, gap=reason))
    return kept


def _without(work: Work, names: set[str]) -> Work:
    return Work(*(0 if name in names else count for name, count in work.items()))


def _left_out(op: Op, names: set[str], counter: _Counter, inside: Op | None, opaque: Op | None) -> list[Item]:
    """The components of a trace op of which the counter counts none in this module.

    Where the counter met an ``opaque`` op in it (a custom autograd function) and counts nothing at all of this one, this
    one ran inside of that.
    """
    work = _without(known_work(op) or ZERO, set(COMPONENTS) - names)
    if not work:
        return []
    if work == known_work(op):
        inside = inside or opaque
    rule = None if inside else counter.rule(op)
    reason = counter.why_not(op) if rule is None else rule.formula
    if inside:
        reason = f"ran inside of {inside.op}: {counter.why_not(inside)}"
    return [
        make_item(
            None,
            None,
            layer=op.layer,
            op=op.op,
            ran=work,
            times=op.calls,
            cause=Cause.OP_NOT_COUNTED if rule is None else Cause.FORMULA_DIFFERS,
            ops=(op.id,),
            reason=reason,
            only=tuple(name for name in COMPONENTS if name in names),
        )
    ]
