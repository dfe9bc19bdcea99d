"""The closed forms: each by hand on one shape, and how they stand to each other on all."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.products.mfu.closed_forms import FORMS, Shape, numerators

N, L, H, V, T, HEADS = 1000, 3, 20, 50, 16, 4
SMALL = Shape(N, L, H, V, T, HEADS)
ATTENTION = 12 * L * H * T
SIZES = [size.name for size in fields(Shape)]
BY_HAND = {
    "palm": 6 * N + ATTENTION,
    "6n": 6 * N,
    "palm-causal": 6 * N + ATTENTION // 2,
    "torchtitan": 6 * (N - V * H) + ATTENTION,
    "megatron-causal": 6 * (N - V * H) + ATTENTION // 2,
    "6n-no-embedding": 6 * (N - V * H),
    "kaplan": 6 * (N - 2 * V * H) + ATTENTION,
    "megatron-model": 3 * (24 * L * H * H + 4 * L * H * T + 2 * H * V),
    "megatron-eq3": 4 * (24 * L * H * H + 4 * L * H * T) + 3 * 2 * H * V,
    "4n": 4 * N,
    "2n": 2 * N,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_formula_by_hand(name: str) -> None:
    (form,) = (f for f in FORMS if f.name == name)
    made = form.of(SMALL)
    assert made is not None
    assert made.total == BY_HAND[name]


sizes = st.integers(1, 10**6)


@settings(max_examples=10, deadline=None)
@given(st.builds(Shape, *[sizes] * 8))
def test_two_formulas_differ_by_their_parts(shape: Shape) -> None:
    made = numerators(shape)
    assert len(made) == len(FORMS)
    for one in made:
        for other in made:
            assert other.total + sum(one.differs(other).values()) == one.total


@pytest.mark.parametrize("missing", SIZES)
def test_a_size_that_is_not_stated_leaves_its_formulas_out(missing: str) -> None:
    left = Shape(**{name: 0 if name == missing else 8 for name in SIZES})
    made = {n.name for n in numerators(left)}
    assert made == {f.name for f in FORMS if missing not in f.needs}
