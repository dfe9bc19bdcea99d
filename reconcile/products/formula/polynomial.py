"""Polynomials with exact rational coefficients, and their interpolation on a lower set (Newton's divided differences).

A lower set is a set of exponents that contains, with (a, b), every (a', b') with a' <= a and b' <= b. On the points whose
coordinates are the nodes that these exponents number, exactly one polynomial with these exponents takes given values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...core.number_format import number

Powers = tuple[int, ...]
"""An exponent per variable."""


@dataclass(frozen=True)
class Polynomial:
    """A sum of ``terms`` (powers -> coefficient, none of them 0) in ``variables``."""

    variables: tuple[str, ...]
    terms: Mapping[Powers, Fraction]

    def at(self, values: Sequence[int]) -> Fraction:
        """The value at this point."""
        return sum(
            (c * math.prod(x**p for x, p in zip(values, powers, strict=True)) for powers, c in self.terms.items()),
            Fraction(0),
        )

    @cached_property
    def terms_in_order(self) -> tuple[tuple[Powers, Fraction], ...]:
        """The terms, those of the highest total degree first, and among these the first variable's highest power."""
        return tuple(sorted(self.terms.items(), key=lambda term: (-sum(term[0]), [-power for power in term[0]])))

    @property
    def denominator(self) -> int:
        """The least common denominator of the coefficients."""
        return math.lcm(*(c.denominator for c in self.terms.values()))


def format_fraction(value: Fraction) -> str:
    """A fraction as text: ``1/2``, ``12,345``."""
    return number(value.numerator) + (f"/{number(value.denominator)}" if value.denominator > 1 else "")


def box(degrees: Sequence[int]) -> list[Powers]:
    """The exponents up to these degrees, in lexicographic order: a lower set."""
    return list(itertools.product(*(range(degree + 1) for degree in degrees)))


def interpolate(
    variables: Sequence[str], nodes: Sequence[Sequence[int]], values: Mapping[Powers, int | Fraction]
) -> Polynomial:
    """The polynomial with the exponents of ``values``, a lower set, that takes each value at the point that its exponents number:
    the value of (1, 2) is that at nodes[0][1], nodes[1][2]."""
    differences = {powers: Fraction(value) for powers, value in values.items()}
    for axis in range(len(variables)):
        differences = _divide_differences(differences, axis, nodes[axis])
    terms: dict[Powers, Fraction] = {}
    for powers, coefficient in differences.items():
        if coefficient:
            for expanded, factor in _expand_newton_basis(powers, nodes).items():
                terms[expanded] = terms.get(expanded, Fraction(0)) + coefficient * factor
    return Polynomial(tuple(variables), {powers: c for powers, c in terms.items() if c})


def degree(nodes: Sequence[int], values: Sequence[int | Fraction]) -> int:
    """The degree of the polynomial of one variable through these values."""
    line = interpolate(("x",), (nodes,), {(k,): value for k, value in enumerate(values)})
    return max((power for (power,) in line.terms), default=0)


def _divide_differences(values: Mapping[Powers, Fraction], axis: int, nodes: Sequence[int]) -> dict[Powers, Fraction]:
    """Newton's divided differences along one axis."""
    differences = dict(values)
    for order in range(1, 1 + max(powers[axis] for powers in values)):
        for powers in sorted(differences, key=lambda p: -p[axis]):
            k = powers[axis]
            if k >= order:
                below = (*powers[:axis], k - 1, *powers[axis + 1 :])
                differences[powers] = (differences[powers] - differences[below]) / (nodes[k] - nodes[k - order])
    return differences


def _expand_newton_basis(powers: Powers, nodes: Sequence[Sequence[int]]) -> dict[Powers, int]:
    """The product over the variables of (x - node 0) ... (x - node k - 1), as powers -> integer."""
    terms: dict[Powers, int] = {(): 1}
    for power, axis in zip(powers, nodes, strict=True):
        factor = [1]  # coefficients of 1, x, x^2, ...
        for node in axis[:power]:
            factor = [a - node * b for a, b in zip([0, *factor], [*factor, 0], strict=True)]
        terms = {(*p, k): c * f for p, c in terms.items() for k, f in enumerate(factor) if f}
    return terms


def eliminate(rows: list[list[Fraction]], unknowns: int) -> bool:
    """Bring equations, whose first entries are the coefficients of so many ``unknowns``, to the form in which each of the first
    rows has one of these alone. Returns whether they determine all."""
    for column in range(unknowns):
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return False
        rows[column], rows[pivot] = rows[pivot], rows[column]
        inverse = 1 / rows[column][column]
        rows[column] = [entry * inverse for entry in rows[column]]
        for i, row in enumerate(rows):
            factor = row[column]
            if i != column and factor:
                rows[i] = [a - factor * b for a, b in zip(row, rows[column], strict=True)]
    return True
