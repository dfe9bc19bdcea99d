"""Items of a count that was made with a smaller image and multiplied by the area.

What grows with the area is counted as if the full image had run.  Where the multiply-adds that ran are not those of the smaller
image times the area, the whole difference of that module has the cause ``extrapolated``: the counter ran the model with another
input, so nothing else about the two can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....core.causes import Cause
from ....core.records import Op, Trace
from ....work import ZERO
from ..bridge import Item, View, known_work, make_item, unknown_of
from ..rulebook import apply
from . import entry_of
from .rules import BOOK


def extrapolated(item: Item, cells: int) -> Item:
    """An item of the smaller image, with its sightings as often as the image has cells. Other work than that is no gap here."""
    counted = item.counted * cells
    sightings = tuple(op._replace(calls=op.calls * cells) for op in item.sightings)
    differs = item.seen and counted.mac != item.ran.mac * item.times
    return replace(
        item,
        counted=counted,
        sightings=sightings,
        gap=item.gap if item.unknown else "",
        cause=item.cause or (Cause.EXTRAPOLATED if differs else None),
    )


def of_all_functions(view: View, functions: Sequence[Op], trace: Trace) -> tuple[list[Item], tuple[Op, ...]]:
    """An item per module of all functions that it calls and all products that ran there, and the other ops of the trace."""
    items: list[Item] = []
    taken: set[str] = set()
    for layer in dict.fromkeys(op.layer for op in functions):
        calls = [op for op in functions if op.layer == layer]
        ops = [op for op in trace.ops if op.layer == layer and (known_work(op) or ZERO).mac]
        counted, ran = ZERO, ZERO
        for call in calls:
            counted = counted + apply(BOOK.of(call, view.versions), call, lambda op: "")[0] * call.calls
        for op in ops:
            ran = ran + (known_work(op) or ZERO) * op.calls
        item = make_item(
            calls[0],
            BOOK.of(calls[0], view.versions),
            layer=layer,
            op=calls[0].op,
            counted=counted,
            seen=1,
            ran=ran,
            times=1 if ops else 0,
            entry=entry_of(layer),
            ops=tuple(op.id for op in ops),
            unknown=unknown_of(ops),
        )
        items.append(replace(item, sightings=tuple(calls)))
        taken.update(op.id for op in ops)
    return items, tuple(op for op in trace.ops if op.id not in taken)
