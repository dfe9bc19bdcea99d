"""Match entries of an older ledger, or ops of an older trace, to those of a newer one: by layer and op, then shapes and amounts.

An upgrade of a framework changes names first, so a name never decides alone.  Within one layer and kind of op, two entries
are the same if they agree on, in this order: the name and what was seen (shapes, attributes, calls); what was seen and
the amount (renamed); what was seen; the name; the amount; and, last, only their position.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from ..align.alignment import Alignment
from ..core.records import Ledger, Op, Trace
from ..work import UnknownWork, Work, work_of


@dataclass(frozen=True, slots=True)
class Compared:
    """One amount that is compared: of a ledger's entry or a trace's op.

    ``amount`` is the entry's value, or the op's work over all its calls (None: unknown); ``seen`` is the text
    of its shapes, attributes and calls, without any name; ``shapes`` is the short form for people.
    """

    id: str
    layer: str
    op: str
    amount: int | Work | None
    calls: int
    seen: str
    shapes: str


@dataclass(frozen=True, slots=True)
class Matched:
    """``pairs`` of the same entry before and after, in the order of the new record; entries that are ``gone`` or ``new``."""

    pairs: tuple[tuple[Compared, Compared], ...]
    gone: tuple[Compared, ...]
    new: tuple[Compared, ...]


def match(old: Sequence[Compared], new: Sequence[Compared]) -> Matched:
    """Pair entries of the same layer and kind of op. Each round pairs the rest by a weaker agreement."""
    left, right = dict(enumerate(old)), dict(enumerate(new))
    matched: dict[int, tuple[Compared, Compared]] = {}
    for key in _KEYS:
        waiting: dict[Hashable, list[int]] = {}
        for index, entry in left.items():
            waiting.setdefault(key(entry), []).append(index)
        for index, entry in list(right.items()):
            same = waiting.get(key(entry))
            if same:
                matched[index] = (left.pop(same.pop(0)), right.pop(index))
    pairs = tuple(matched[index] for index in sorted(matched))
    return Matched(pairs, tuple(left.values()), tuple(right.values()))


_KEYS: tuple[Callable[[Compared], Hashable], ...] = (
    lambda h: (h.layer, h.op, h.id, h.seen),
    lambda h: (h.layer, h.op, h.seen, h.amount, h.calls),
    lambda h: (h.layer, h.op, h.seen),
    lambda h: (h.layer, h.op, h.id),
    lambda h: (h.layer, h.op, h.amount, h.calls),
    lambda h: (h.layer, h.op),
)


def total(entries: Sequence[Compared]) -> int | Work | None:
    """The sum of the amounts of one or more entries of one record; None if one of them is unknown."""
    amounts = [entry.amount for entry in entries]
    if isinstance(amounts[0], int):
        return sum(amount for amount in amounts if isinstance(amount, int))
    known = [amount for amount in amounts if isinstance(amount, Work)]
    return sum(known, Work()) if len(known) == len(amounts) else None


def of_ledger(ledger: Ledger, align: Alignment) -> list[Compared]:
    """A ledger's entries as amounts to compare, each with what the counter saw of its ops."""
    sighted: dict[str, list[Op]] = {}
    for sighting in ledger.sightings:
        sighted.setdefault(sighting.entry, []).append(sighting.op)
    return [
        Compared(
            entry.id,
            align.layer(ledger.framework, entry.layer),
            entry.op,
            entry.value,
            entry.calls,
            "; ".join(map(_identify_op, sighted.get(entry.id, ()))),
            _shapes(sighted.get(entry.id, ())),
        )
        for entry in ledger.entries
    ]


def of_trace(trace: Trace, align: Alignment) -> list[Compared]:
    """A trace's ops that do work, and those whose work is unknown, as amounts to compare."""
    entries = []
    for op in trace.ops:
        try:
            work = work_of(op) * op.calls
        except UnknownWork:
            work = None
        if work is None or work:
            layer = align.layer(trace.framework, op.layer)
            entries.append(Compared(op.id, layer, op.op, work, op.calls, _identify_op(op), _shapes([op])))
    return entries


def _identify_op(op: Op) -> str:
    return json.dumps([op.op, op.inputs, op.outputs, op.attrs, op.calls, op.phase], sort_keys=True)


def _shapes(ops: Iterable[Op]) -> str:
    """``(1, 97, 96), (3,) -> (1, 97, 3), 97 x``, of the first op."""
    for op in ops:
        inputs = ", ".join(_shape(t.shape) for t in op.inputs)
        outputs = ", ".join(_shape(t.shape) for t in op.outputs)
        return f"{inputs} -> {outputs}, {op.calls} x"
    return ""


def _shape(shape: Sequence[int | None] | None) -> str:
    if shape is None:
        return "unknown"
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"
