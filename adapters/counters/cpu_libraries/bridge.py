"""From the log of a math library to the trace: op by op, in the order in which they ran, by sizes.

An op of the trace is witnessed if the run beside the log met the same op on the same tensors, as often, and the lines of each
call are that op's products. An op that ran and left no line is not witnessed. An op that only one of the two runs has, or whose
lines have other sizes, is a residual. The matching takes records alone, so it holds for any log whose lines are placed at ops.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from ....work import COMPONENTS, MASKED, ZERO
from ..bridge import Bridge, Item, View, known_work, make_item, other_ops, unknown_of, unmet
from . import PRODUCTS
from .rules import BOOK, agrees, bias_as_product, products_of, skips_masked
from .shares import AGAIN, KERNEL

SILENT = "not witnessed: MKL and oneDNN wrote no line while {op} ran, so a kernel of PyTorch's own computed it"
PACKED = (
    "not witnessed: MKL and oneDNN wrote no line while {op} ran, so FBGEMM or QNNPACK computed it, which keep no log: "
    "torch.backends.quantized.engine = 'onednn' does"
)
UNSAID = "not witnessed: MKL wrote a line of {op}, {routine}, in which the sizes are addresses"
SKIPPED = (
    "the kernel leaves out blocks whose products a causal mask discards whole: the log has the others, and the trace takes "
    "attention whole"
)
ONES = "the bias is added as a product with ones: K is 1 in its line, and the trace has sums"
OTHER = "the log says other sizes at {layer}: {op} asks for {mac:,} multiply-adds, and {lines} stand in the log"
REST = tuple(name for name in COMPONENTS if name != "mac")
NOT_LOGGED = "MKL and oneDNN write products alone"


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of every op that either run has."""
    met: dict[Hashable, list[Sighting]] = {}
    for sighting in view.sightings:
        met.setdefault(_key(sighting.op), []).append(sighting)
    ran: dict[Hashable, list[Op]] = {}
    for op in trace.ops:
        ran.setdefault(_key(op), []).append(op)
    items: list[Item] = []
    for key in dict.fromkeys((*ran, *met)):
        items += _same(view, met.get(key, []), ran.get(key, []))
    return Bridge(tuple(items))


def _key(op: Op) -> Hashable:
    """What makes two records one op: all but the lines, the number of calls, and the id."""
    attrs = sorted((name, repr(value)) for name, value in op.attrs.items() if name != PRODUCTS)
    return op.op, op.layer, op.phase, op.inputs, op.outputs, tuple(attrs)


def _same(view: View, met: Sequence[Sighting], ran: Sequence[Op]) -> list[Item]:
    """Items of one op on one kind of tensors."""
    calls = sum(s.op.calls for s in met), sum(op.calls for op in ran)
    if calls[0] != calls[1]:
        any_op = ran[0] if ran else met[0].op
        where = other_ops(
            view.counter, any_op.layer, f"{any_op.op} ran {calls[0]} times there and {calls[1]} times in the trace"
        )
        items = [_booked(s, gap=where) for s in met]
        return items + [unmet(op, known_work(op) or ZERO, None, where, gap=where) for op in ran]
    ids = tuple(op.id for op in ran)
    return [item for s in met for item in _judged(s, ids)]


def _booked(sighting: Sighting, gap: str) -> Item:
    op = sighting.op
    rule = BOOK.of(op, {})
    counted = rule.compute(op) if rule else ZERO
    return make_item(
        op, rule, layer=op.layer, op=op.op, counted=counted, seen=op.calls, times=op.calls, entry=sighting.entry, gap=gap
    )  # fmt: skip


def _judged(sighting: Sighting, ids: tuple[str, ...]) -> list[Item]:
    """The products of an op beside its lines, and the rest of its work, of which a log of products says nothing."""
    op, products = sighting.op, products_of(sighting.op)
    work, unknown = known_work(op), unknown_of([op])
    if work is None or "mac" in unknown:
        if products:
            return [_booked(sighting, f"the work of {op.op} is unknown, and {_lines(op)} stand in the log")]
        return [unmet(op, ZERO, Cause.CALL_NOT_SEEN, _silent(op))]
    rule = BOOK.of(op, {})
    counted = rule.compute(op) if rule else ZERO
    gap, cause, reason = "", None, ""
    if products and not all(p.sizes for p in products):
        cause = Cause.CALL_NOT_SEEN
        routine = next(p.routine for p in products if not p.sizes)
        reason = UNSAID.format(op=op.op, routine=routine)
        gap = "" if not counted.mac else reason  # some lines have sizes: what they are of is not known
    elif products and bias_as_product(op, products):
        cause, reason = Cause.FORMULA_DIFFERS, ONES
    elif products and skips_masked(op, products):
        cause, reason = Cause.BLOCKS_SKIPPED, SKIPPED
    elif products and not (agrees(op, products) and counted.mac == work.mac):
        gap = OTHER.format(layer=op.layer or "the root", op=op.op, mac=work.mac, lines=_lines(op))
    elif not products and work.mac:
        cause, reason = Cause.CALL_NOT_SEEN, _silent(op)
    ran = work.only(("mac",))
    items = _again(sighting)
    if products or ran:
        item = make_item(
            op, rule, layer=op.layer, op=op.op, counted=counted, seen=op.calls if products else 0, ran=ran, times=op.calls,
            cause=cause, entry=sighting.entry if products else "", ops=ids, reason=reason, gap=gap, only=("mac",),
        )  # fmt: skip
        items.append(replace(item, formula=reason) if reason else item)
    rest = work.only((*REST, MASKED))
    if rest or unknown:
        items.append(
            make_item(
                op,
                None,
                layer=op.layer,
                op=op.op,
                ran=rest,
                times=op.calls,
                cause=Cause.OP_NOT_COUNTED,
                ops=ids,
                reason=NOT_LOGGED,
                only=(*REST, MASKED),
                unknown=unknown,
            )
        )
    return items


def _silent(op: Op) -> str:
    """Why an op has no line."""
    return (PACKED if op.op.startswith("quantized.") else SILENT).format(op=op.op)


def _again(sighting: Sighting) -> list[Item]:
    """The scores that a kernel of attention computes again for their gradient, which the trace has once."""
    if sighting.op.op != KERNEL or sighting.op.attrs.get("part") != "scores":
        return []
    op = sighting.op._replace(attrs=dict(sighting.op.attrs, part=AGAIN))
    if not products_of(op):
        return []
    rule = BOOK.of(op, {})
    counted = rule.compute(op) if rule else ZERO
    item = make_item(
        op, rule, layer=op.layer, op=op.op, counted=counted, seen=op.calls, cause=Cause.SCORES_AGAIN, entry=sighting.entry,
        only=("mac",),
    )  # fmt: skip
    return [item]


def _lines(op: Op) -> str:
    """``2 x SGEMM(k 8, m 16, n 16)``: the first three lines of an op in words."""
    words = [f"{p.routine}({', '.join(f'{n} {s}' for n, s in sorted(p.sizes.items()))})" for p in products_of(op)]
    kinds = list(dict.fromkeys(words))
    text = ", ".join(f"{words.count(kind)} x {kind}" for kind in kinds[:3])
    return text + (f" and {len(kinds) - 3} more" if len(kinds) > 3 else "")
