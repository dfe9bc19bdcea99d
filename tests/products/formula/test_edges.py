"""A polynomial that holds from the second size of a variable on is found, and nothing that is none is taken for one."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.products.formula.reasons import after_the_first
from reconcile.products.formula.variables import read_variables

VARIABLES = read_variables(["B=1..5", "T=8,16,32,64,128"])
POINTS = list(itertools.product((1, 2, 3, 4, 5), (8, 16, 32, 64, 128)))
COEFFICIENTS = st.integers(-1000, 1000)


@settings(max_examples=12, deadline=None)
@given(COEFFICIENTS, COEFFICIENTS, COEFFICIENTS, st.integers(1, 9), st.booleans())
def test_the_first_size_of_either_variable_may_be_a_case(a: int, b: int, c: int, more: int, of_t: bool) -> None:
    def count(batch: int, steps: int) -> int:
        own = steps == 8 if of_t else batch == 1
        return a * batch * steps * steps + b * batch + c + own * more * (batch + steps)

    assert after_the_first(VARIABLES, {at: count(*at) for at in POINTS}) == int(of_t)


def test_a_pattern_is_no_edge() -> None:
    assert after_the_first(VARIABLES, {(b, t): t * (b // 2) for b, t in POINTS}) is None
    assert after_the_first(VARIABLES, {(b, t): t * b + (t == 32) for b, t in POINTS}) is None


def test_points_that_do_not_determine_a_polynomial_say_nothing() -> None:
    line = {(b, 8): b * b + (b == 1) for b in (1, 2, 3, 4, 5)}
    assert after_the_first(VARIABLES, line) is None
    assert after_the_first(VARIABLES, {at: 7 + (at[0] == 1) for at in POINTS if at[0] < 4}) is None
