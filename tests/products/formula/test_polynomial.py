"""Interpolation gives back every polynomial whose values it gets, fractions included."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from reconcile.products.formula.polynomial import Polynomial, box, degree, eliminate, interpolate

NODES = ((1, 2, 3, 5, 8), (16, 17, 18, 19, 40), (4, 8, 16, 32, 64))


def drawn(seed: int) -> Polynomial:
    """A polynomial of three variables with integer values: its coefficients over 2 belong to x (x + 1) / 2."""
    draw = random.Random(seed)
    terms = {powers: Fraction(draw.randint(-(10**12), 10**12)) for powers in box((2, 3, 1)) if draw.random() < 0.6}
    for powers in ((1, 0, 0), (2, 0, 0)):
        terms[powers] = terms.get(powers, Fraction(0)) + Fraction(1, 2)
    return Polynomial(("x", "y", "z"), terms)


@pytest.mark.parametrize("seed", range(5))
def test_it_gives_back_the_polynomial(seed: int) -> None:
    given = drawn(seed)
    values = {powers: given.at([axis[k] for axis, k in zip(NODES, powers, strict=True)]) for powers in box((3, 4, 2))}
    assert {value.denominator for value in values.values()} == {1}
    back = interpolate(given.variables, NODES, {powers: int(value) for powers, value in values.items()})
    assert dict(back.terms) == dict(given.terms)
    assert back.denominator == 2


def test_the_value_at_a_point_is_the_sum_of_the_terms() -> None:
    given = Polynomial(("B", "T"), {(1, 2): Fraction(512), (0, 1): Fraction(-3, 2), (0, 0): Fraction(7)})
    assert given.at((3, 10)) == 512 * 3 * 100 - 15 + 7


@pytest.mark.parametrize("power", range(5))
def test_the_degree_of_a_power_is_its_exponent(power: int) -> None:
    nodes = (3, 4, 7, 9, 10, 30)
    assert degree(nodes, [5 * x**power for x in nodes]) == power


def test_equations_are_solved_unless_they_depend_on_each_other() -> None:
    """x + 2 y = 8 and 3 x - y = 3 at x = 2, y = 3, and twice the first is no second equation."""
    first, second, twice = ([Fraction(n) for n in row] for row in ((1, 2, 8), (3, -1, 3), (2, 4, 16)))
    rows = [first, twice, second]
    assert eliminate(rows, 2)
    assert [row[-1] for row in rows] == [2, 3, 0]
    assert not eliminate([first, twice], 2)
