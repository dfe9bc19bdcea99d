"""Which entry of an older record is which of a newer one: by the pair's layer and the kind of op, then by what was seen.

Names are what changes first when a framework is upgraded, so they never decide alone.  Within one layer and kind of op,
two entries are the same if they agree on, in this order: name and what was seen; what was seen and the amount (renamed);
what was seen; name; amount; and at last nothing but their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from ..align.alignment import Alignment
from ..core.records import Ledger, Op, Trace
from ..work import UnknownWork, Work, work_of


@dataclass(frozen=True, slots=True)
class Held:
    """One amount that is compared: a ledger's entry or a trace's op.

    ``amount`` is the entry's value, or the op's work over all its calls (None: unknown); ``seen`` spells shapes,
    attributes and calls, without any name; ``shapes`` is its short form for people.
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
    """``pairs`` of the same entry before and after, in the order of the new record; what went; what came."""

    pairs: tuple[tuple[Held, Held], ...]
    gone: tuple[Held, ...]
    come: tuple[Held, ...]


def match(old: Sequence[Held], new: Sequence[Held]) -> Matched:
    """Pair entries of the same layer and kind of op, by the finest agreement that is left."""
    left, right = dict(enumerate(old)), dict(enumerate(new))
    found: dict[int, tuple[Held, Held]] = {}
    for key in _KEYS:
        waiting: dict[Hashable, list[int]] = {}
        for index, held in left.items():
            waiting.setdefault(key(held), []).append(index)
        for index, held in list(right.items()):
            same = waiting.get(key(held))
            if same:
                found[index] = (left.pop(same.pop(0)), right.pop(index))
    pairs = tuple(found[index] for index in sorted(found))
    return Matched(pairs, tuple(left.values()), tuple(right.values()))


_KEYS: tuple[Callable[[Held], Hashable], ...] = (
    lambda h: (h.layer, h.op, h.id, h.seen),
    lambda h: (h.layer, h.op, h.seen, h.amount, h.calls),
    lambda h: (h.layer, h.op, h.seen),
    lambda h: (h.layer, h.op, h.id),
    lambda h: (h.layer, h.op, h.amount, h.calls),
    lambda h: (h.layer, h.op),
)


def of_ledger(ledger: Ledger, align: Alignment) -> list[Held]:
    """A ledger's entries, each with what the counter had in front of it."""
    sighted: dict[str, list[Op]] = {}
    for sighting in ledger.sightings:
        sighted.setdefault(sighting.entry, []).append(sighting.op)
    return [
        Held(
            entry.id,
            align.layer(ledger.framework, entry.layer),
            entry.op,
            entry.value,
            entry.calls,
            "; ".join(map(_seen, sighted.get(entry.id, ()))),
            _shapes(sighted.get(entry.id, ())),
        )
        for entry in ledger.entries
    ]


def of_trace(trace: Trace, align: Alignment) -> list[Held]:
    """A trace's ops that do work, or of which nobody knows whether they do."""
    found = []
    for op in trace.ops:
        try:
            work = work_of(op) * op.calls
        except UnknownWork:
            work = None
        if work is None or work:
            layer = align.layer(trace.framework, op.layer)
            found.append(Held(op.id, layer, op.op, work, op.calls, _seen(op), _shapes([op])))
    return found


def _seen(op: Op) -> str:
    return json.dumps([op.op, op.inputs, op.outputs, op.attrs, op.calls, op.phase], sort_keys=True)


def _shapes(ops: Iterable[Op]) -> str:
    """``(1, 97, 96), float32 -> ... x 97``, for the first of several."""
    for op in ops:
        inputs = ", ".join(_shape(t.shape) for t in op.inputs)
        outputs = ", ".join(_shape(t.shape) for t in op.outputs)
        return f"{inputs} -> {outputs}, {op.calls} x"
    return ""


def _shape(shape: Sequence[int | None] | None) -> str:
    if shape is None:
        return "unknown"
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"
