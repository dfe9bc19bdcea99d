"""Bridge from the log of a math library to the trace, op by op, by the sizes of products; for cpu_libraries and tf_libraries.

An op of the trace is witnessed if the run with the log had the same op on the same tensors, as often, and the lines of each
call are that op's products. An op that ran and left no line is not witnessed. An op that only one of the two runs has, or whose
lines have other sizes for no known cause, is a residual. The matching reads records alone, so it serves any log of ops.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from ....work import COMPONENTS, MASKED, ZERO, Work
from ..bridge import Bridge, Item, View, known_work, make_item, other_ops, unknown_of, unmet
from ..rulebook import RuleBook
from . import PRODUCTS
from .log_lines import Product

LOG_SAYS_OTHER_SIZES = (
    "the log says other sizes at {layer}: {op} asks for {mac:,} multiply-adds, and {lines} stand in the log"
)
REST = tuple(name for name in COMPONENTS if name != "mac")


def log_book(name: str, package: str, libraries: str, products_of: Callable[[Op], list[Product]]) -> RuleBook:
    """The rules of a counter that reads a log: one, by which an op counts the multiply-adds of its lines."""
    book = RuleBook(name, package, {"onednn": "src/common/verbose.cpp"})
    formula = f"M N K of each line that {libraries} wrote"
    rule = book.pattern(
        "an op with lines in the log", lambda op: PRODUCTS in op.attrs, source="onednn:1", formula=formula
    )
    rule(lambda op: Work(mac=sum(p.macs for p in products_of(op))))
    return book


def nothing_beside(_sighting: Sighting) -> list[Item]:
    """No products but those of the trace's ops."""
    return []


@dataclass(frozen=True, slots=True)
class Logbook:
    """What the bridge needs to know of one log.

    Attributes:
        book: The rules of the counter that reads it.
        ignored: Attributes that the counter adds to an op.
        products_of: Gives an op's lines.
        agrees: Whether the lines of an op are just its products.
        explained: The cause and the reason why they are not; None if there is none.
        silent: The reason why an op has no line.
        unsaid: The reason why a line of an op is without sizes.
        products_alone: Why the log has nothing but products.
        beside: Makes items of products that no op of the trace is about.
    """

    book: RuleBook
    ignored: tuple[str, ...]
    products_of: Callable[[Op], list[Product]]
    agrees: Callable[[Op, Sequence[Product]], bool]
    explained: Callable[[Op, Sequence[Product]], tuple[Cause, str] | None]
    silent: Callable[[Op], str]
    unsaid: str
    products_alone: str
    beside: Callable[[Sighting], list[Item]] = nothing_beside


def bridge_log(view: View, trace: Trace, log: Logbook) -> Bridge:
    """Items of every op of the trace or of the run with the log: its products with their lines, a cause, or a residual."""
    met: dict[Hashable, list[Sighting]] = {}
    for sighting in view.sightings:
        met.setdefault(_key(sighting.op, log), []).append(sighting)
    ran: dict[Hashable, list[Op]] = {}
    for op in trace.ops:
        ran.setdefault(_key(op, log), []).append(op)
    items: list[Item] = []
    for key in dict.fromkeys((*ran, *met)):
        items += _same(view, met.get(key, []), ran.get(key, []), log)
    return Bridge(tuple(items))


def _key(op: Op, log: Logbook) -> Hashable:
    """What makes two records one op: all but what the counter adds, the number of calls, and the id."""
    attrs = sorted((name, repr(value)) for name, value in op.attrs.items() if name not in log.ignored)
    return op.op, op.layer, op.phase, op.inputs, op.outputs, tuple(attrs)


def _same(view: View, met: Sequence[Sighting], ran: Sequence[Op], log: Logbook) -> list[Item]:
    """Items of one op on one kind of tensors."""
    calls = sum(s.op.calls for s in met), sum(op.calls for op in ran)
    if calls[0] != calls[1]:
        any_op = ran[0] if ran else met[0].op
        where = other_ops(
            view.counter, any_op.layer, f"{any_op.op} ran {calls[0]} times there and {calls[1]} times in the trace"
        )
        items = [unread_item(s.op, s.entry, log, gap=where) for s in met]
        return items + [unmet(op, known_work(op) or ZERO, None, where, gap=where) for op in ran]
    ids = tuple(op.id for op in ran)
    items = [item for s in met for item in _judge_sighting(s, (s.op.id,) if s.op.id in ids else ids, log)]
    return items + _rest(met[0].op, calls[0], ids, log)


def unread_item(op: Op, entry: str, log: Logbook, gap: str) -> Item:
    """The lines of an op that no cause explains: a residual."""
    rule, counted = log.book.of(op, {}), log.book.counts(op, {})
    return make_item(op, rule, counted=counted, seen=op.calls, times=op.calls, entry=entry, gap=gap)


def _judge_sighting(sighting: Sighting, ids: tuple[str, ...], log: Logbook) -> list[Item]:
    """The products of an op beside its lines."""
    op, products = sighting.op, log.products_of(sighting.op)
    work, unknown = known_work(op), unknown_of([op])
    if work is None or "mac" in unknown:
        if products:
            gap = f"the work of {op.op} is unknown, and {_lines(products)} stand in the log"
            return [unread_item(op, sighting.entry, log, gap)]
        return [unmet(op, ZERO, Cause.CALL_NOT_SEEN, log.silent(op))]
    rule, counted = log.book.of(op, {}), log.book.counts(op, {})
    gap, cause, reason = "", None, ""
    if products and not all(p.sizes for p in products):
        cause = Cause.CALL_NOT_SEEN
        routine = next(p.routine for p in products if not p.sizes)
        reason = log.unsaid.format(op=op.op, routine=routine)
        gap = "" if not counted.mac else reason  # some lines have sizes: what they are of is not known
    elif products and (said := log.explained(op, products)) is not None:
        cause, reason = said
    elif products and not (log.agrees(op, products) and counted.mac == work.mac):
        gap = LOG_SAYS_OTHER_SIZES.format(layer=op.layer or "the root", op=op.op, mac=work.mac, lines=_lines(products))
    elif not products and work.mac:
        cause, reason = Cause.CALL_NOT_SEEN, log.silent(op)
    ran = work.only(("mac",))
    items = log.beside(sighting)
    if products or ran:
        item = make_item(
            op, rule, counted=counted, seen=op.calls if products else 0, ran=ran, times=op.calls, cause=cause,
            entry=sighting.entry if products else "", ops=ids, reason=reason, gap=gap, only=("mac",),
        )  # fmt: skip
        items.append(replace(item, formula=reason) if reason else item)
    return items


def _rest(op: Op, calls: int, ids: tuple[str, ...], log: Logbook) -> list[Item]:
    """The rest of the work of all calls of an op, of which a log of products says nothing."""
    work, unknown = known_work(op), unknown_of([op])
    if work is None or "mac" in unknown or not (work.only((*REST, MASKED)) or unknown):
        return []
    item = make_item(
        op, None, ran=work.only((*REST, MASKED)), times=calls, cause=Cause.OP_NOT_COUNTED, ops=ids,
        reason=log.products_alone, only=(*REST, MASKED), unknown=unknown,
    )  # fmt: skip
    return [item]


def _lines(products: Sequence[Product]) -> str:
    """``2 x SGEMM(k 8, m 16, n 16)``: the first three lines of an op in words."""
    words = [f"{p.routine}({', '.join(f'{n} {s}' for n, s in sorted(p.sizes.items()))})" for p in products]
    kinds = list(dict.fromkeys(words))
    text = ", ".join(f"{words.count(kind)} x {kind}" for kind in kinds[:3])
    return text + (f" and {len(kinds) - 3} more" if len(kinds) > 3 else "")
