"""What a claim is: readings by hand, products that are planted and found, and claims that mean nothing."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.products.mfu.agreement import agreement, by_chance, ranges, significant
from reconcile.products.mfu.printed_number import Claim, Printed, claim
from reconcile.products.mfu.readings import singles
from reconcile.products.mfu.search import Outcome, products, search
from reconcile.products.mfu.setup import Setup
from tests.products.mfu.setups import A100, by_tokens, rated


def found(text: str, setup: Setup) -> Outcome:
    return search(claim(text), setup)


def readings(outcome: Outcome) -> list[str]:
    return [factor.reading for factor in outcome.best.factors]


@pytest.mark.parametrize(
    ("text", "setup", "factor", "words"),
    [
        ("24.3%", rated("480T"), Fraction(1, 2), "with sparsity"),
        ("100%", rated("156T", A100), Fraction(2), "tf32"),
        ("88.32%", rated("275.6T", "B300"), Fraction(2250, 312), "OLMo-core"),
        ("563%", rated("1757T", "MI350X"), Fraction(23069, 3120), "torchtitan"),
        ("25.00%", rated("3120T", A100, devices=40, pp=2), Fraction(1), ""),
        ("50.00%", rated("3120T", A100, devices=40, pp=2), Fraction(2), "the world over PP"),
        ("6.250%", rated("3120T", A100, devices=40, accumulation=4), Fraction(1, 4), "one micro-batch"),
        ("31.250%", rated("3120T", A100, devices=40, padding="20%"), Fraction(5, 4), "padding counted"),
        ("33.333%", rated("3120T", A100, devices=40), Fraction(4, 3), "recomputation counted"),
    ],
)
def test_a_thread_is_its_factor(text: str, setup: Setup, factor: Fraction, words: str) -> None:
    outcome = found(text, setup)
    assert outcome.explained
    assert outcome.best.multiple == factor
    assert words in "; ".join(readings(outcome))


def test_a_reading_that_is_stated_to_be_none_is_none() -> None:
    assert readings(found("33.333%", rated("3120T", A100, devices=40, recompute="none"))) != [
        "recomputation counted: HFU called MFU"
    ]


def test_another_formula_opens_into_its_parts() -> None:
    """PaLM counts 12LhT whole; half of it is 6 * 32 * 4096 * 4096."""
    setup = by_tokens("96000", devices=10)
    half = 6 * 32 * 4096 * 4096
    value = Fraction(96000 * (6 * 6738415616 + half), 10 * 9894 * 10**11)
    outcome = found(f"{float(100 * value):.3f}%", setup)
    assert readings(outcome) == ["6N + 6LhT in place of 6N + 12LhT"]
    assert dict(outcome.best.factors[0].causes) == {"attention": -half}


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 7))
@pytest.mark.slow
def test_a_planted_product_is_found(pick: int, digits: int) -> None:
    """Any product of the list, printed with many digits, agrees; what is shown is at most as complicated."""
    setup = rated("1545.38T", devices=8, recompute="none")
    made = products(setup, True)
    planted = made.made[pick % len(made.made)]
    share = 100 * planted.value.value
    places = max(0, digits - 1 - math.floor(math.log10(float(share))))
    outcome = search(claim(f"{float(share):.{places}f}%"), setup, made)
    assert outcome.agrees
    assert outcome.best.cost <= planted.cost


def test_a_rate_has_no_readings_of_a_peak() -> None:
    assert {f.kind for f in singles(rated("400T", devices=8), False)} == {"devices", "recompute"}


def test_chance_is_the_width_of_what_agrees() -> None:
    """One value of 50 % and three digits: 0.1 of 50 wide, of two decades."""
    (stated, *_) = products(rated("494.7T", recompute="none"), True).made
    share = by_chance(claim("77.7%").figure, [stated.value])
    assert share == pytest.approx(math.log(50.05 / 49.95) / math.log(100), rel=1e-9)
    assert significant(claim("77.7%").figure) == 3


@settings(deadline=None)
@given(st.integers(100, 99_999), st.integers(0, 200), st.integers(1, 4), st.integers(1, 99_999))
def test_a_range_is_what_agrees_once_it_is_printed(size: int, half: int, digits: int, number: int) -> None:
    """By force: the number is printed with so many digits, and agrees if and only if it lies in a range of the value."""
    value = Printed("", Fraction(size), Fraction(min(half, size // 2)))
    given = Fraction(number) + Fraction(1, 7)  # never between two prints
    whole = 10 ** max(0, len(str(number)) - digits) * Fraction(1, 10 ** max(0, digits - len(str(number))))
    written = round(given / whole) * whole
    if written >= 10 ** len(str(number)):  # 9.96 is printed as 10, with the digits of its new decade
        whole *= 10
        written = round(given / whole) * whole
    agrees = bool(agreement(value, Printed("", written, whole / 2)))
    assert agrees == any(low < given < high for low, high in ranges(value, digits))


SETUPS = {
    "rate": rated("1545.38T", devices=8),
    "splits": rated("9545.4T", A100, devices=64, tp=8, pp=4),
    "tokens": by_tokens("1234567", devices=128),
    "everything": by_tokens("1234567", devices=128, tp=8, pp=4, cp=2, accumulation=4),
    "twelve": rated("374.4T", A100, devices=10),
    "rounded inputs": rated("1.5P", devices=8),
}
"""What is stated gives 19.5 to 70 %, 12.0 % and 19 % with few digits: two digits near these have wide intervals."""


QUICK = (("twelve", 2), ("splits", 2))
"""What is tried with every test run; `make slow` tries all."""


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        pytest.param(name, digits, marks=() if (name, digits) in QUICK else pytest.mark.slow)
        for name in SETUPS
        for digits in (2, 3, 4, 5)
    ],
)
def test_two_percent_of_random_claims_are_explained(name: str, digits: int) -> None:
    """No more than 20 of 1,000 claims that mean nothing, of which each logarithm from a tenth to ten times is as likely."""
    made, generator = products(SETUPS[name], True), random.Random(digits)
    middle = float(made.made[0].value.value)
    drawn = Counter(random_claim(middle * 10 ** generator.uniform(-1, 1), digits) for _ in range(1000))
    assert sum(times for claimed, times in drawn.items() if search(claimed, made.setup, made).explained) <= 20


def random_claim(share: float, digits: int) -> Claim:
    unit = Fraction(10) ** (math.floor(math.log10(share)) - digits + 1)
    return Claim(Printed("", round(Fraction(share) / unit) * unit, unit / 2), "share")


def test_one_digit_explains_nothing() -> None:
    """4 % is what 4.0 % is printed as, and what 5.5 % of random claims are."""
    outcome = found("4%", rated("124.8T", A100, devices=10))
    assert (outcome.explained, outcome.best.factors, outcome.agrees != "") == (False, (), True)
    assert outcome.chance == pytest.approx(math.log(4.5 / 3.5) / math.log(100))
    assert found("4.0%", rated("124.8T", A100, devices=10)).explained
