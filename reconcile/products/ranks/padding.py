"""FLOPs on padding: the ranks' parts of a sharded dimension add up to more than the one device's dimension."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import zip_longest

from ...core.results import TraceRow
from .rank_calls import Cell


def padding_flops(
    cell: Cell, counts: Sequence[int], batches: int, work: Callable[[TraceRow], Fraction], chosen: Sequence[int] = ()
) -> Fraction:
    """The FLOPs that the ranks spend on padding. 0 unless exactly one dimension differs, and its parts add up to other than a
    whole multiple of the one device's.

    ``counts`` are how many ranks each part has; ``work`` gives a row of the one device in FLOPs, for all batches. Rows for which
    tokens have ``chosen`` experts are no dimension that ranks share.
    """
    padded = Fraction(0)
    for index, row in enumerate(cell.one):
        sizes: dict[int, int] = defaultdict(int)  # a dimension of the one device's: what the ranks have of it
        for part, rows in cell.parts.items():
            like = rows[index] if len(rows) == len(cell.one) else None
            if like is None or like.op != row.op or like.calls != row.calls:
                return Fraction(0)
            found = _differing_sizes(row, like)
            if len(found) != 1:
                return Fraction(0)
            ((whole, local),) = found
            sizes[whole] += local * counts[part]
        if len(sizes) != 1:
            return Fraction(0)
        ((whole, together),) = sizes.items()
        # Several copies of its parts, or parts of several batches, are no padding either.
        if whole in chosen or together % (whole * batches) == 0:
            return Fraction(0)
        padded += work(row) * Fraction(together - whole * batches, whole * batches)
    return padded


def _differing_sizes(one: TraceRow, rank: TraceRow) -> set[tuple[int, int]]:
    """The sizes of dimensions that differ, as (one device's, the rank's)."""
    pairs = zip_longest((*one.inputs, *one.outputs), (*rank.inputs, *rank.outputs))
    found: set[tuple[int, int]] = set()
    for whole, local in pairs:
        shapes = [() if t is None or t.shape is None else t.shape for t in (whole, local)]
        found |= {(int(a or 0), int(b or 0)) for a, b in zip_longest(*shapes) if a != b}
    return found
