"""What a claim is: readings by hand, products that are planted and found, and claims that mean nothing."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.mfu.printed import claim
from reconcile.mfu.readings import singles
from reconcile.mfu.search import MOST, Outcome, by_chance, products, search, significant
from reconcile.mfu.setup import Setup
from tests.mfu.setups import A100, by_tokens, rated

TERA = 10**12


def found(text: str, setup: Setup) -> Outcome:
    return search(claim(text), setup)


def readings(outcome: Outcome) -> list[str]:
    return [factor.reading for factor in outcome.best.factors]


def test_eight_devices_counted_as_one() -> None:
    """NVIDIA-NeMo/RL#1015: 1,545.38 over 8 times half of 1,979."""
    outcome = found("156.18%", rated("1545.38T", devices=8))
    assert readings(outcome) == ["devices counted as 1"]
    assert outcome.best.multiple == 8
    assert outcome.mfu == Fraction(154538, 100) / 8 / Fraction(1979, 2)
    low, high = outcome.remainder
    assert low <= 1 <= high


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
def test_a_planted_product_is_found(pick: int, digits: int) -> None:
    """Any product of the list, printed with many digits, agrees; what is shown is at most as complicated."""
    setup = rated("1545.38T", devices=8, recompute="none")
    made = products(setup, True)
    planted = made[pick % len(made)]
    share = 100 * planted.value.value
    places = max(0, digits - 1 - math.floor(math.log10(float(share))))
    outcome = search(claim(f"{float(share):.{places}f}%"), setup, made)
    assert outcome.agrees
    assert outcome.best.cost <= planted.cost


def test_no_two_factors_of_a_product_read_one_thing_twice() -> None:
    made = products(by_tokens("96000", devices=8, tp=2, accumulation=2), True)
    assert [p for p in made if len({f.kind for f in p.factors}) < len(p.factors)] == []
    assert max(len(p.factors) for p in made) == 2


def test_a_rate_has_no_readings_of_a_peak() -> None:
    assert {f.kind for f in singles(rated("400T", devices=8), False)} == {"devices", "recompute"}


def test_a_claim_that_is_nothing_is_not_explained() -> None:
    outcome = found("1.2345%", rated("1545.38T", devices=8))
    assert not outcome.explained
    low, high = outcome.remainder
    assert outcome.agrees or not low <= 1 <= high


def test_chance_is_the_width_of_what_agrees() -> None:
    """One value of 50 % and three digits: 0.1 of 50 wide, of two decades."""
    (stated, *_) = products(rated("494.7T", recompute="none"), True)
    digits, inputs = math.log(50.05 / 49.95), float(stated.value.half / stated.value.value) * 2
    assert by_chance(claim("77.7%").figure, [stated]) == pytest.approx((digits + inputs) / math.log(100), rel=0.02)
    assert significant(claim("77.7%").figure) == 3


def random_claims(setup: Setup, count: int, digits: int, seed: int) -> list[str]:
    """Utilisations that mean nothing: log-uniform from a tenth to ten times the stated one."""
    generator = random.Random(seed)
    middle = float(products(setup, True)[0].stated.value)
    texts = []
    for _ in range(count):
        share = 100 * middle * 10 ** generator.uniform(-1, 1)
        texts.append(f"{share:.{max(0, digits - 1 - math.floor(math.log10(share)))}f}%")
    return texts


def explained(setup: Setup, count: int, digits: int, seed: int) -> int:
    made = products(setup, True)
    return sum(search(claim(text), setup, made).explained for text in random_claims(setup, count, digits, seed))


SETUPS = {
    "rate": rated("1545.38T", devices=8),
    "splits": rated("9545.4T", A100, devices=64, tp=8, pp=4),
    "tokens": by_tokens("1234567", devices=128),
    "everything": by_tokens("1234567", devices=128, tp=8, pp=4, cp=2, accumulation=4),
}


def test_random_claims_are_seldom_explained() -> None:
    assert explained(SETUPS["rate"], 100, 4, 7) <= 2


@pytest.mark.fresh
@pytest.mark.parametrize("name", SETUPS)
def test_two_percent_of_random_claims_are_explained(name: str) -> None:
    """No more than that of 1,000 claims of three to five digits, by products of two factors or fewer."""
    assert sum(explained(SETUPS[name], count, digits, digits) for count, digits in ((334, 3), (333, 4), (333, 5))) <= 20


def test_the_limit_of_chance_is_below_two_percent() -> None:
    assert MOST < 0.02
