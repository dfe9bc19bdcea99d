"""Infers what an unknown counter counts: sums of quantities of a call that give its reported numbers exactly.

``reconcile counter draft`` writes rules from these readings (products/authors). As in grammar.py the list of quantities is
closed: a reading is a sum of at most three of them, each times a small fraction, that gives the number of every case without a
remainder. All arithmetic is on fractions; nothing is fitted by least squares. The coefficients come from some of the cases; the
others have to agree, among them one that took no part (``held_out``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

MOST_TERMS = 3
LARGEST_FACTOR, LARGEST_DIVISOR = 64, 2
"""A coefficient beyond these fits the number of one case; it is no part of a formula."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a counter reported for one layer: its quantities, and the number in units of one multiply-add or one operation."""

    name: str
    quantities: Mapping[str, int]
    value: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Coefficients by quantity; none means that the counter counts nothing."""

    terms: tuple[tuple[str, Fraction], ...]

    @property
    def length(self) -> int:
        """How much there is to write: plain quantities come before multiples of them."""
        return sum(abs(factor.numerator) + factor.denominator for _, factor in self.terms)

    def value(self, quantities: Mapping[str, int]) -> Fraction:
        """The number for a call of these quantities."""
        return sum((factor * quantities.get(name, 0) for name, factor in self.terms), Fraction(0))


@dataclass(frozen=True, slots=True)
class Draft:
    """The readings of one class or op that fit, the simplest first. ``cases`` are those that support them, and ``held_out`` is
    the one that confirms them; without a reading, ``reason`` says why there is none."""

    op: str
    readings: tuple[Reading, ...]
    cases: tuple[str, ...]
    held_out: str
    reason: str = ""

    @property
    def reading(self) -> Reading | None:
        """The reading that the draft shows."""
        return self.readings[0] if self.readings else None


def draft(op: str, cases: Sequence[Case], names: Sequence[str]) -> Draft:
    """The readings of these cases with the fewest quantities of ``names``. The held-out case is the last one without which the
    others still determine a reading."""
    different = _distinct(cases)
    if len(different) < 2:
        return Draft(op, (), tuple(case.name for case in different), "", "layers that are alike confirm nothing")
    known = [name for name in names if all(name in case.quantities for case in cases)]
    for number_of_terms in range(min(MOST_TERMS, len(different) - 1) + 1):
        for held_out in reversed(different):
            supporting = [case for case in different if case is not held_out]
            fits = [_fit(chosen, supporting) for chosen in combinations(known, number_of_terms)]
            readings = [r for r in fits if r is not None and r.value(held_out.quantities) == held_out.value]
            if readings:
                readings.sort(key=lambda reading: reading.length)
                return Draft(op, tuple(readings), tuple(case.name for case in supporting), held_out.name)
    return Draft(op, (), tuple(case.name for case in different), "", "no reading fits")


def _distinct(cases: Sequence[Case]) -> list[Case]:
    """The cases without those that add nothing: a repeated case, or a multiple of another case."""
    different: dict[tuple[tuple[str, Fraction], ...], Case] = {}
    for case in cases:
        unit = next((count for count in case.quantities.values() if count), 1)
        numbers = {**case.quantities, "": case.value}
        different.setdefault(tuple((name, Fraction(count, unit)) for name, count in sorted(numbers.items())), case)
    return list(different.values())


def _fit(names: tuple[str, ...], cases: Sequence[Case]) -> Reading | None:
    """The reading of exactly these quantities, if one and only one fits every case with small coefficients."""
    rows = [[Fraction(case.quantities[name]) for name in names] + [Fraction(case.value)] for case in cases]
    factors = _solve_equations(rows, len(names))
    if factors is None or not all(map(_small, factors)):
        return None
    return Reading(tuple(zip(names, factors, strict=True)))


def _small(factor: Fraction) -> bool:
    return 0 < abs(factor.numerator) <= LARGEST_FACTOR and factor.denominator <= LARGEST_DIVISOR


def _solve_equations(rows: list[list[Fraction]], unknowns: int) -> list[Fraction] | None:
    """The one solution of the equations; None if there is none, or more than one. Gauss-Jordan elimination."""
    rows = [list(row) for row in rows]
    for column in range(unknowns):
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for i, row in enumerate(rows):
            if i != column and row[column]:
                rows[i] = [a - row[column] * b for a, b in zip(row, rows[column], strict=True)]
    if any(row[-1] for row in rows[unknowns:]):
        return None
    return [rows[i][-1] for i in range(unknowns)]
