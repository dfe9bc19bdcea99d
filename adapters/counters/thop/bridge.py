"""Bridge from a thop ledger to the PyTorch trace: hooked modules (module_bridge.py), and the rounding of sums in float32."""

from __future__ import annotations

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from .. import SUM
from ..bridge import Bridge, Item, View, make_item
from ..float32_sums import float32_sum
from ..module_bridge import Hooks, bridge_modules
from .rules import BOOK, FLOAT32

HOOKS = Hooks("thop", BOOK, without_copies="this release of thop adds up the children of the model, without the model")


def bridge(view: View, trace: Trace) -> Bridge:
    """One item per hooked module and path, and those of sums in float32; ops that ran elsewhere are booked one by one."""
    items = bridge_modules(view, trace, HOOKS).items
    if BOOK.find(FLOAT32, view.versions) is None:
        return Bridge(items)
    entries = dict.fromkeys(item.entry for item in items if item.entry)
    by_entry: dict[str, list[Sighting]] = {entry: [] for entry in entries}
    for sighting in view.sightings:
        if sighting.entry in by_entry:
            by_entry[sighting.entry].append(sighting)
    rounded: list[Item] = []
    sums: list[tuple[int, int]] = []
    for entry, sightings in by_entry.items():
        addends = [(sum(BOOK.counts(s.op, view.versions)), s.op.calls * s.copies) for s in sightings]
        rounded += _rounding_items(entry, sightings[0].op, addends, view)
        sums.append((float32_sum(addends), 1))
    rounded += _rounding_items(SUM, Op(FLOAT32, FLOAT32, "", (), (), {}), sums, view)
    return Bridge((*items, *rounded))


def _rounding_items(entry: str, of: Op, addends: list[tuple[int, int]], view: View) -> list[Item]:
    """What adding in float32 changes at one entry, in a release that does so; nothing if every sum is exact."""
    rule = BOOK.find(FLOAT32, view.versions)
    if rule is None:
        return []
    inexact = {"addends": [[*addend] for addend in addends if addend[0]]}
    met = Op(entry, FLOAT32, of.layer, (), (), inexact, phase=of.phase, within=of.within)
    counted, cause = rule.compute(met), Cause.FLOAT32_ROUNDING
    return [make_item(of, rule, met=(met,), counted=counted, seen=1, cause=cause, entry=entry)] if counted else []
