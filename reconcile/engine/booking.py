"""Booking: turns one item of a bridge into amounts by cause, in the fixed order of causes, without the counter's reported value.

A counter's value of one component is ``coefficient x counted x seen``; the convention's is ``weight x ran x times``.
The difference is corrected cause by cause, and each correction starts from the result of those before it. So the parts add
up by construction, and no two of them undo each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..adapters.counters.bridge import Item
from ..core.causes import Cause
from ..core.conventions import Convention
from ..core.records import MAC
from ..work import Work

_Add = Callable[[Cause, int], None]

OTHER_COMPONENTS = ("add", "mul", "div", "cmp", "special")
"""Components of work whose operations are one FLOP each; a multiply-add is two."""


@dataclass(frozen=True, slots=True)
class Booking:
    """One amount to add to the counter's normalised total, in FLOPs."""

    cause: Cause
    amount: int


def flops_per_unit(unit: str) -> int:
    """The factor from a counter's unit to FLOPs: 2 for MAC, 1 for FLOP."""
    return 2 if unit == MAC else 1


def own_value(work: Work, unit: str) -> int:
    """The amount that this work adds to a counter's total, in its own unit: a MAC is 1 MAC or 2 FLOP, the rest 1.

    The ``accumulators`` of a rule are dot products whose first add the counter saves: it takes 2K - 1 of K terms.
    """
    mac = work.mac if unit == MAC else 2 * work.mac
    return mac - work.accumulators + work.add + work.mul + work.div + work.cmp + work.special


def expected_amount(item: Item, unit: str) -> int:
    """The amount that, by the rules, this item added to its entry, in the counter's own unit."""
    return own_value(item.counted, unit) * item.seen


def book(item: Item, unit: str, convention: Convention) -> list[Booking]:
    """The bookings that lead from the counter's work for one item to the work that ran; none for a gap, nor for unknown
    components with a weight: under that convention the trace is incomplete."""
    if item.gap:
        return []
    if item.cause is not None:
        if convention.weighs(item.unknown):
            return []
        return _book_whole_difference(item, item.cause, unit, convention)
    sums: dict[Cause, int] = {}

    def add(cause: Cause, amount: int) -> None:
        if amount:
            sums[cause] = sums.get(cause, 0) + amount

    for name in ("mac", *OTHER_COMPONENTS):
        if name not in item.unknown or not convention.weight(name):
            _book_component(item, name, flops_per_unit(unit), convention, add)
    if "accumulators" not in item.unknown:
        _book_first_adds(item, flops_per_unit(unit), convention, add)
    add(Cause.OUTSIDE_CONVENTION, convention.masked * item.ran.masked * item.times)
    return [Booking(cause, amount) for cause, amount in sums.items() if amount]


def _book_whole_difference(item: Item, cause: Cause, unit: str, convention: Convention) -> list[Booking]:
    ran = convention.flops(item.ran) * item.times
    counted = own_value(item.counted, unit) * flops_per_unit(unit) * item.seen
    return [Booking(cause, ran - counted)] if ran != counted else []


def _book_component(item: Item, name: str, unit_scale: int, convention: Convention, add: _Add) -> None:
    counted: int = getattr(item.counted, name)
    ran: int = getattr(item.ran, name)
    if not counted and not ran:
        return
    natural = 2 if name == "mac" else 1  # FLOPs of one, without any doubling
    coefficient = 2 if name == "mac" else unit_scale  # FLOPs of one in the normalised counter
    weight = convention.weight(name)
    if weight == 0:
        add(Cause.OUTSIDE_CONVENTION, -coefficient * counted * item.seen)
        return
    add(_repeat_cause(item), coefficient * counted * (item.times - item.seen))
    add(Cause.NON_MAC_DOUBLED, (natural - coefficient) * counted * item.times)
    add(Cause.FORMULA_DIFFERS, natural * (ran - counted) * item.times)
    add(Cause.WEIGHT_DIFFERS, (weight - natural) * ran * item.times)


def _book_first_adds(item: Item, unit_scale: int, convention: Convention, add: _Add) -> None:
    """The first add of each dot product, which the counter may save (2K - 1), or the convention, or both."""
    saved, weight = -unit_scale * item.counted.accumulators, convention.accumulators
    if weight:
        add(_repeat_cause(item), saved * (item.times - item.seen))
    add(Cause.FIRST_ADD, weight * item.ran.accumulators * item.times - saved * (item.times if weight else item.seen))


def _repeat_cause(item: Item) -> Cause:
    return item.repeat or (Cause.LOOP_COUNTED_ONCE if item.times > item.seen else Cause.RECOUNTED)
