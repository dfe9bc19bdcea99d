"""How adding in float32 changes the sum of an analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....core.causes import Cause
from ....core.records import Op, Sighting
from .. import SUM
from ..bridge import Item, View, make_item
from ..rulebook import apply
from .rules import BOOK, FLOAT32


def rounding_items(sightings: Iterable[Sighting], view: View, why_not: Callable[[Op], str]) -> Iterable[Item]:
    """What adding in float32 changes: every computation is summed by itself, and then added where it is called."""
    whole: list[Any] = []
    for sighting in sightings:
        counted, _ = apply(BOOK.find(sighting.op.op, view.versions), sighting.op, why_not)
        if counted:
            _into(whole, sighting.op.within).append(2 * counted.mac + sum(counted.only(SINGLES)))
    op = Op(FLOAT32, FLOAT32, "", (), (), {"addends": _plain(whole)})
    rule = BOOK.find(FLOAT32, view.versions)
    counted, _ = apply(rule, op, why_not)
    if counted:
        yield make_item(
            op, rule, layer="", op=FLOAT32, counted=counted, seen=1, cause=Cause.FLOAT32_ROUNDING, entry=SUM
        )


SINGLES = ("add", "mul", "div", "cmp", "special")


def _into(addends: list[Any], within: tuple[str, ...]) -> list[Any]:
    """The list of the computation that these calls lead to."""
    for call in within:
        found = next((item for item in addends if isinstance(item, tuple) and item[0] == call), None)
        if found is None:
            found = (call, [])
            addends.append(found)
        addends = found[1]
    return addends


def _plain(addends: list[Any]) -> list[Any]:
    return [_plain(item[1]) if isinstance(item, tuple) else item for item in addends]
