"""The rule by which a claimed utilisation agrees with a computed value, and the probability that a random claim does.

A random claim is a number whose logarithm is uniform between a tenth and ten times the stated value, printed with some digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from .printed_number import Printed

DIGITS, ROUNDING, CUT = "to the printed digits", "within the rounding of the inputs", "cut off, not rounded"
BEST = (DIGITS, ROUNDING, CUT)
"""The ways in which a claim agrees, the best first."""
CUT_FROM = 3
"""A claim of fewer digits is not read as cut off: that would give it twice as many values."""
SPAN = 10
"""A random claim lies between the stated value divided by this and times this."""


def agreement(value: Printed, claimed: Printed) -> str:
    """How the claim agrees with the value, '' if it does not."""
    if claimed.low <= value.value <= claimed.high:
        return DIGITS
    if claimed.low <= value.high and value.low <= claimed.high:
        return ROUNDING
    low, high = claimed.range_if_cut
    return CUT if claimed.half and low <= value.value < high and significant(claimed) >= CUT_FROM else ""


def significant(claimed: Printed) -> int:
    """The digits of a printed number: 156.18 % has 5."""
    return len(str(int(claimed.value / (2 * claimed.half))))


def ranges(value: Printed, digits: int) -> Iterator[tuple[Fraction, Fraction]]:
    """The numbers that are printed, with this many digits, as a claim that agrees with the value: one range in each decade."""
    for power in range(_power(value.low), _power(value.high) + 2):
        unit = Fraction(10) ** (power - digits + 1)
        least, most = 10 ** (digits - 1), 10**digits - 1
        first = math.ceil(value.low / unit - Fraction(1, 2))
        if digits >= CUT_FROM:
            first = min(first, math.floor(value.value / unit))
        first, last = max(first, least), min(math.floor(value.high / unit + Fraction(1, 2)), most)
        if first <= last:
            # Below a power of ten a number has a digit more to be told by.
            below = unit / 20 if first == least else unit / 2
            yield first * unit - below, last * unit + unit / 2


def _power(value: Fraction) -> int:
    """The power of ten of the first digit."""
    power = len(str(value.numerator)) - len(str(value.denominator))
    return power - 1 if value < Fraction(10) ** power else power


Spans = Iterable[tuple[float, float]]
"""Ranges of the logarithm of a claim over the stated value."""


def spans(value: Printed, middle: Fraction, digits: int) -> Iterator[tuple[float, float]]:
    """The random claims around ``middle`` that agree with the value."""
    most = math.log(SPAN)
    for low, high in ranges(value, digits):
        start, end = max(-most, math.log(low / middle)), min(most, math.log(high / middle))
        if start < end:
            yield start, end


def covered_share(found: Spans) -> float:
    """The share of random claims in any of these ranges."""
    share, reached = 0.0, -math.inf
    for start, end in sorted(found):
        share += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return share / (2 * math.log(SPAN))


def by_chance(claimed: Printed, values: Sequence[Printed]) -> float:
    """The share of random claims of as many digits that one of these values agrees with; the first is the stated one."""
    if not claimed.half:
        return 0.0
    digits = significant(claimed)
    return covered_share(span for value in values for span in spans(value, values[0].value, digits))
