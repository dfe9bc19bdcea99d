"""The probability that a random number agrees with a reading: the strength of a match's evidence, in decode and audit.

``by_chance`` computes it exactly for each published number, from the readings that the number is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .printed_figure import PrintedFigure
from .readings import Candidate

SPAN = 10
"""A random figure lies between the multiply-adds of the work that ran divided by this and times this."""


def by_chance(table: Sequence[Candidate], wanted: PrintedFigure, macs: int = 0) -> float | None:
    """The share of random figures of as many digits that some candidate of ``table`` agrees with (search.find_agreeing); None for
    an exact number, and where no multiply-adds are known.

    Random: the logarithm of the number that is printed is even between a tenth and ten times the multiply-adds, which are
    ``macs``, or without that the first of the table.
    """
    macs = macs or next((c.value for c in table if c.plain and c.value), 0)
    if wanted.exact or not macs:
        return None
    figures = {figure for c in table if c.value and not c.exact for figure in _figures(c, wanted)}
    return covered_share((printed_range(*figure, wanted.length) for figure in figures), macs)


def _figures(candidate: Candidate, wanted: PrintedFigure) -> Iterable[tuple[int, int]]:
    """The figures that a candidate agrees with, as digits and unit: it rounds to them, or it is cut off to them."""
    length, value = wanted.length, candidate.value
    unit = 10 ** max(0, len(str(value)) - length)
    rounded = [(value + unit // 2) // unit]
    if 2 * (value % unit) == unit:  # halfway: it rounds to both
        rounded.append(value // unit)
    cut = [value // unit] if length > 1 and (candidate.plain or not wanted.few) else []
    for digits in {*rounded, *cut}:
        yield (digits // 10, unit * 10) if digits >= 10**length else (digits, unit)


def printed_range(digits: int, unit: int, length: int) -> tuple[float, float]:
    """The numbers that are printed as this figure. Those below a power of ten have a digit more to be told by."""
    below = unit / 20 if digits == 10 ** (length - 1) and unit > 1 else unit / 2
    return digits * unit - below, digits * unit + unit / 2


def covered_share(ranges: Iterable[tuple[float, float]], macs: int) -> float:
    """The share that these ranges have of the numbers between a tenth and ten times ``macs``, by their logarithms."""
    low, high = math.log(macs / SPAN), math.log(macs * SPAN)
    logarithms = sorted((max(low, math.log(first)), min(high, math.log(last))) for first, last in ranges if first > 0)
    share, reached = 0.0, low
    for start, end in logarithms:
        share += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return share / (high - low)
