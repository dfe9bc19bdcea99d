"""Items of a ledger that was counted on a smaller image and multiplied by the ratio of the areas (``get_flops``).

The ledger has two sets of sightings: those of the smaller image, as often as they are in the total, and those of the full one,
with 0 copies.  The full ones are bridged as if the counter had counted them, so the trace has to have the work that they met.
Where the rules count as much for the full image as for the smaller one times the ratio, that is the item.  Otherwise the whole
difference of the module has the cause ``extrapolated``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....core.causes import Cause
from ....core.records import Op, Sighting
from ....work import sum_works
from ..bridge import Item, View, make_item
from .rules import BOOK

ONLY_SMALL = "the counter met it with the smaller image alone"


def extrapolate_items(view: View, small: Sequence[Sighting], items: Iterable[Item]) -> list[Item]:
    """The items of the full image, with the counts of the smaller one in place of those that differ."""
    found: list[Item] = []
    by_entry: dict[str, list[Item]] = {}
    for item in items:
        if item.entry:
            by_entry.setdefault(item.entry, []).append(item)
        else:
            found.append(item)
    calls: dict[str, list[Op]] = {}
    for sighting in small:
        calls.setdefault(sighting.entry, []).append(_multiply_sighting(sighting))
    for entry in dict.fromkeys((*by_entry, *calls)):
        found += _settle_entry(entry, calls.get(entry, []), by_entry.get(entry, []), view)
    return found


def _multiply_sighting(sighting: Sighting) -> Op:
    return sighting.op._replace(calls=sighting.op.calls * sighting.copies)


def _settle_entry(entry: str, calls: Sequence[Op], full: Sequence[Item], view: View) -> list[Item]:
    counted = sum_works(BOOK.counts(call, view.versions) * call.calls for call in calls)
    ran = sum_works(item.ran * item.times for item in full)
    if counted == sum_works(item.counted * item.seen for item in full):
        return list(full)
    first = full[0] if full else None
    gaps = [item.gap for item in full if item.gap] if full else [ONLY_SMALL]
    op = calls[0] if calls else None
    item = make_item(
        op,
        BOOK.of(op, view.versions) if op is not None else None,
        **({} if first is None else {"layer": first.layer, "op": first.op}),
        met=calls,
        counted=counted,
        seen=1,
        ran=ran,
        times=1 if ran else 0,
        cause=Cause.EXTRAPOLATED,
        entry=entry,
        ops=tuple(id for item in full for id in item.ops),
        gap=gaps[0] if gaps else "",
        unknown=frozenset[str]().union(*(item.unknown for item in full)),
    )
    return [item]
