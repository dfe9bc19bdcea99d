"""A count that lies on a polynomial except at the smallest size of a variable: a batch of 1 broadcasts, a window does not fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from .polynomial import Powers, box
from .variables import FEWEST, HELD_OUT, NODES, At, Variable

MOST = 40
"""The most exponents that are tried: beyond them, exact elimination is slow."""


def after_the_first(variables: Sequence[Variable], values: Mapping[At, int]) -> int | None:
    """The index of a variable such that, without its smallest size, all counts lie on one polynomial, with HELD_OUT counts to
    check it; None if there is no such variable."""
    return next((index for index in range(len(variables)) if without_the_first(variables, index, values)), None)


def without_the_first(variables: Sequence[Variable], index: int, values: Mapping[At, int]) -> bool:
    """Whether all counts except those at the smallest size of this variable lie on one polynomial."""
    rest = {at: value for at, value in values.items() if at[index] != variables[index].values[0]}
    return len({at[index] for at in rest}) >= FEWEST and _smooth(rest)


def _smooth(values: Mapping[At, int]) -> bool:
    """Whether a polynomial, of a degree that leaves one size of each variable for checking, has all these values."""
    sizes = [len({at[axis] for at in values}) for axis in range(len(next(iter(values))))]
    degrees = itertools.product(*(range(min(size - 1, NODES - 1)) for size in sizes))
    fitting = (d for d in degrees if math.prod(k + 1 for k in d) <= min(MOST, len(values) - HELD_OUT))
    return any(_lie_on(box(d), values) for d in sorted(fitting, key=sum))


def _lie_on(exponents: Sequence[Powers], values: Mapping[At, int]) -> bool:
    """Whether exactly one polynomial with these exponents takes all values: by elimination in exact fractions."""
    rows = [
        [Fraction(math.prod(x**p for x, p in zip(at, powers, strict=True))) for powers in exponents] + [Fraction(value)]
        for at, value in values.items()
    ]
    for column in range(len(exponents)):
        pivot = next((row for row in rows[column:] if row[column]), None)
        if pivot is None:
            return False  # the points do not determine it
        rows.remove(pivot)
        rows.insert(column, pivot)
        for row in rows[column + 1 :]:
            factor = row[column] / pivot[column]
            row[:] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return not any(row[-1] for row in rows[len(exponents) :])
