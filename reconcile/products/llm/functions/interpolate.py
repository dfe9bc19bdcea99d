"""The polynomial that a function of whole numbers is, from its values alone: exact and sparse.

R. Zippel, "Probabilistic algorithms for sparse polynomials" (EUROSAM 1979): variable by variable, the monomials found so far
are assumed to be all in these variables, and their coefficients at a new node follow from as many values as there are
monomials. Values at further points prove the result.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from ...formula.polynomial import Polynomial, Powers, degree, eliminate, interpolate

NODES = 7
"""Values of one variable that show whether a function is a polynomial of it, of a degree up to ``NODES`` - 2."""
HELD_OUT = 5
"""Points beside all others at which a polynomial has to give the function's value."""
TERMS = 200
"""The most monomials of a formula that somebody wrote."""
DRAWS = 50
"""How often points are drawn that determine the coefficients of some terms."""
Call = Callable[[tuple[int, ...]], Fraction]
"""A function of one whole number per variable."""


class NotPolynomial(Exception):
    """The function is no polynomial of these variables."""


def find_polynomial(
    call: Call, names: Sequence[str], values: Sequence[Sequence[int]], held: Sequence[int]
) -> tuple[Polynomial, tuple[str, ...]]:
    """The polynomial, and the variables in which the function is none: these are held at ``held``, a value each.

    Args:
        call: The function. It is called at ``values`` alone.
        names: The variables.
        values: For each variable the values that it may have, ``NODES`` or more.
        held: For each variable the value at which it is held if the function is no polynomial of it.

    Raises:
        NotPolynomial: The function is no polynomial, whatever is held.
    """
    drawn, known = random.Random(0), dict[tuple[int, ...], Fraction]()

    def value(at: Sequence[int]) -> Fraction:
        key = tuple(at)
        if key not in known:
            known[key] = call(key)
        return known[key]

    nodes = [list(each) for each in values]
    anchor = [drawn.choice(each) for each in nodes]
    if call(tuple(anchor)) != call(tuple(anchor)):
        raise NotPolynomial
    degrees = [_find_degree(value, anchor, axis, nodes[axis]) for axis in range(len(nodes))]
    stuck = {axis for axis, found in enumerate(degrees) if found > NODES - 2}
    if stuck:
        for axis in stuck:
            anchor[axis], nodes[axis] = held[axis], [held[axis]]
        degrees = [0 if i in stuck else _find_degree(value, anchor, i, nodes[i]) for i in range(len(nodes))]
    if len(stuck) == len(nodes) or max(degrees, default=0) > NODES - 2:
        raise NotPolynomial
    terms: dict[Powers, Fraction] = {(): value(anchor)}
    for axis, most in enumerate(degrees):
        terms = _add_variable(value, terms, anchor, axis, most, nodes, drawn)
        if len(terms) > TERMS:
            raise NotPolynomial
    found = Polynomial(tuple(names), {powers: c for powers, c in terms.items() if c})
    for _ in range(HELD_OUT):
        at = [drawn.choice(each) for each in nodes]
        if found.at(at) != value(at):
            raise NotPolynomial
    return found, tuple(names[axis] for axis in sorted(stuck))


def _find_degree(value: Callable[[Sequence[int]], Fraction], anchor: list[int], axis: int, nodes: list[int]) -> int:
    """The degree in one variable at the anchor: ``NODES`` - 1 if the values lie on no polynomial of a smaller one."""
    line = nodes[:NODES]
    return degree(line, [value([*anchor[:axis], x, *anchor[axis + 1 :]]) for x in line])


def _add_variable(
    value: Callable[[Sequence[int]], Fraction],
    terms: dict[Powers, Fraction],
    anchor: list[int],
    axis: int,
    most: int,
    nodes: list[list[int]],
    drawn: random.Random,
) -> dict[Powers, Fraction]:
    """The terms in one more variable, in which their coefficients are polynomials of degree ``most``."""
    if not most:
        return {(*powers, 0): c for powers, c in terms.items()}
    others = [x for x in nodes[axis] if x != anchor[axis]][:most]
    points = _draw_points(list(terms), nodes[:axis], drawn)
    sides = [[value([*at, x, *anchor[axis + 1 :]]) for x in others] for at in points]
    solved = solve([_list_monomials(at, terms) for at in points], sides)
    made: dict[Powers, Fraction] = {}
    for (powers, first), coefficients in zip(terms.items(), solved, strict=True):
        line = dict(enumerate([first, *coefficients]))
        along = interpolate(("x",), ((anchor[axis], *others),), {(k,): c for k, c in line.items()})
        made |= {(*powers, power): c for (power,), c in along.terms.items()}
    return made


def _draw_points(terms: Sequence[Powers], nodes: list[list[int]], drawn: random.Random) -> list[list[int]]:
    """As many points as there are terms, which determine their coefficients."""
    for _ in range(DRAWS):
        points = [[drawn.choice(each) for each in nodes] for _ in terms]
        if eliminate([_list_monomials(at, terms) for at in points], len(terms)):
            return points
    raise NotPolynomial


def _list_monomials(at: Sequence[int], terms: Iterable[Powers]) -> list[Fraction]:
    return [Fraction(math.prod(x**p for x, p in zip(at, powers, strict=True))) for powers in terms]


def solve(rows: list[list[Fraction]], sides: list[list[Fraction]]) -> list[list[Fraction]]:
    """The solutions of a square system of equations for several right sides, by elimination.

    Raises:
        NotPolynomial: The equations depend on each other.
    """
    table = [[*row, *side] for row, side in zip(rows, sides, strict=True)]
    if not eliminate(table, len(rows)):
        raise NotPolynomial
    return [row[len(rows) :] for row in table]
