"""Mixture-of-experts layers of fixed capacity: the work for empty places, less that of dropped tokens (cause expert-capacity).

A rank with such experts computes a fixed number of rows ("places") for each, whatever tokens chose it: a token that finds no
place is dropped, and an empty place is computed as well.  One device without a capacity computes a row for each choice of a
token: of T tokens with k experts each, T x k rows.  The proof is in the shapes: one device's rows are the T x k of its ``topk``,
each expert of a rank has equally many, and the ops are the same in all other dimensions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd

from ...core.records import FORWARD
from ...core.results import TraceRow
from ...core.work import ZERO, Work, prod
from .rank_calls import Cell, Shapes, differing_sizes, shapes_of

CHOICE = "aten.topk"
Sizes = tuple[int | None, ...]
Key = tuple[str, tuple[Sizes, ...]]
"""An op, and its shapes: None stands for the number of rows."""


@dataclass(frozen=True, slots=True)
class Places:
    """How many rows each choice of experts asks one device for, and the ratio of the rows that ranks compute to these."""

    chosen: tuple[int, ...] = ()
    rate: Fraction = Fraction(1)


NONE = Places()
"""The Places of a world whose experts have no capacity."""


def choices(one: Iterable[TraceRow]) -> tuple[int, ...]:
    """How many rows each choice of experts asks one device for."""
    return tuple(
        prod([int(size or 0) for size in row.outputs[0].shape or ()]) * row.calls
        for row in one
        if row.op == CHOICE and row.phase == FORWARD and row.outputs
    )


def places_of(whole: Cell, times: Fraction) -> Places:
    """The places of the ranks' experts: none if nothing proves that they have some.

    The proof: in every product of experts, each expert of the ranks has as many rows, those of one device are those that tokens
    chose, and the sums differ by one ratio.  ``times`` is how many times one device's work their batches are.
    """
    chosen = choices(whole.one)
    products = Cell(
        {index: [r for r in rows if r.work.mac and r.phase == FORWARD] for index, rows in whole.parts.items()},
        [r for r in whole.one if r.work.mac and r.phase == FORWARD],
        whole.ranks,
    )
    rates: set[Fraction] = set()
    for key in _keys(products) if chosen else ():
        of_ranks = {index: _with(key, rows) for index, rows in products.parts.items()}
        alone = sum(size * row.calls for size, row in _with(key, products.one))
        if alone != sum(chosen):
            continue
        sizes = {size for rows in of_ranks.values() for size, _ in rows}
        if len(sizes) != 1 or any(sum(row.calls for _, row in rows) < 2 for rows in of_ranks.values()):
            return NONE
        rates.add(_rows(of_ranks, whole.ranks) / (times * alone))
    return Places(chosen, rates.pop()) if len(rates) == 1 and 0 not in rates else NONE


def separate_places(cell: Cell, times: Fraction, places: Places) -> tuple[Work, Cell]:
    """What all ranks compute for places beyond what tokens chose, or less than that, and the ops as if one device had these
    places as well."""
    more, added = ZERO, []
    for key in _keys(cell) if places.chosen else ():
        of_ranks = {index: _with(key, found) for index, found in cell.parts.items()}
        of_one = _with(key, cell.one)
        alone = sum(size * row.calls for size, row in of_one)
        often = gcd(*(row.calls for _, row in of_one))  # an expert may do it several times
        if alone not in [often * rows for rows in (*places.chosen, sum(places.chosen))]:
            continue
        each = _each(of_one, [pair for pairs in of_ranks.values() for pair in pairs])
        extra = alone * (places.rate - 1)
        if each is None or extra.denominator != 1 or _rows(of_ranks, cell.ranks) != times * (alone + extra):
            continue
        added.append(replace(of_one[0][1], calls=1, work=each * int(extra)))
        more += each * int(extra * times)
    return more, Cell(cell.parts, [*cell.one, *added], cell.ranks) if added else cell


def _rows(of_ranks: dict[int, list[tuple[int, TraceRow]]], counts: Sequence[int]) -> Fraction:
    return Fraction(sum(counts[index] * size * row.calls for index, rows in of_ranks.items() for size, row in rows))


def _each(one: Sequence[tuple[int, TraceRow]], ranks: Sequence[tuple[int, TraceRow]]) -> Work | None:
    """The work of one row more, if it is the same for all pairs of ops with different numbers of rows."""
    found: set[tuple[Fraction, ...]] = set()
    for size, row in one:
        for other, rank in ranks:
            if size != other:
                pairs = zip(rank.work, row.work, strict=True)
                found.add(tuple((Fraction(a, rank.calls) - Fraction(b, row.calls)) / (other - size) for a, b in pairs))
    whole = [work for work in found if all(each.denominator == 1 for each in work)]
    return Work(*map(int, whole[0])) if len(found) == len(whole) == 1 else None


def _keys(cell: Cell) -> list[Key]:
    """The ops that differ from one device's in the number of rows alone, but for those that could be several."""
    by_op: dict[str, tuple[set[Shapes], set[Shapes]]] = defaultdict(lambda: (set(), set()))
    for row in cell.one:
        by_op[row.op][0].add(shapes_of(row))
    for _, row in cell.of_ranks():
        by_op[row.op][1].add(shapes_of(row))
    keys = {
        (op, key)
        for op, (ones, others) in by_op.items()
        for one in ones
        for other in others
        if (key := _find_differing_rows(one, other)) is not None
    }
    every = [*cell.one, *(row for _, row in cell.of_ranks())]
    unsure = {
        key for row in every if len(fits := [key for key in keys if _size(key, row) is not None]) > 1 for key in fits
    }
    return sorted(keys - unsure, key=repr)


def _find_differing_rows(one: Shapes, other: Shapes) -> tuple[Sizes, ...] | None:
    """The shapes with None for the number of rows, if these differ in one number alone."""
    pairs = differing_sizes(one, other)
    if pairs is None or len(pairs) != 1:
        return None
    return tuple(
        tuple(a if a == b else None for a, b in zip(mine or (), theirs or (), strict=True))
        for mine, theirs in zip(one, other, strict=True)
    )


def _with(key: Key, rows: Iterable[TraceRow]) -> list[tuple[int, TraceRow]]:
    return [(size, row) for row in rows if (size := _size(key, row)) is not None]


def _size(key: Key, row: TraceRow) -> int | None:
    """How many rows this op has, if it is one of these."""
    op, shapes = key
    mine = shapes_of(row)
    if row.op != op or [len(shape or ()) for shape in mine] != [len(shape) for shape in shapes]:
        return None
    pairs = [pair for a, b in zip(shapes, mine, strict=True) for pair in zip(a, b or (), strict=True)]
    sizes = {int(size or 0) for fixed, size in pairs if fixed is None}
    return sizes.pop() if len(sizes) == 1 and all(fixed in (None, size) for fixed, size in pairs) else None
