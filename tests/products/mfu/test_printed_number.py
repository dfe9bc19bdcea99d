"""Numbers as people print them: exact intervals, units, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.errors import UsageError
from reconcile.products.mfu.printed_number import claim, rate, read_number, share, work

TERA = 10**12


@pytest.mark.parametrize(
    ("text", "value", "half"),
    [
        ("1545.38", Fraction(154538, 100), Fraction(5, 1000)),
        ("4,550", Fraction(4550), Fraction(1, 2)),
        ("9.89e+14", Fraction(989 * 10**12), Fraction(10**12, 2)),
        ("46.87G", Fraction(4687 * 10**7), Fraction(10**7, 2)),
        ("~238.3K", Fraction(238300), Fraction(50)),
    ],
)
def test_a_number_is_all_numbers_with_its_digits(text: str, value: Fraction, half: Fraction) -> None:
    found = read_number(text, "it")
    assert (found.value, found.half) == (value, half)
    assert (found.low, found.high) == (value - half, value + half)


@settings(deadline=None)
@given(st.integers(1, 10**9), st.integers(0, 6))
def test_what_rounds_to_a_text_is_within_it(number: int, places: int) -> None:
    exact = Fraction(number, 10**6)
    text = f"{float(exact):.{places}f}"
    if Fraction(text):
        found = read_number(text, "it")
        assert found.low - Fraction(1, 10**9) <= exact <= found.high + Fraction(1, 10**9)


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(0, 5))
def test_zeros_at_the_end_may_be_rounded_but_not_two_digits(head: int, zeros: int) -> None:
    found = read_number(str(head * 10**zeros), "it")
    loose = found.loose
    assert loose.value == found.value
    assert loose.half >= found.half
    assert loose.half == found.half or loose.value / (2 * loose.half) >= 10
    assert (loose.value / (2 * loose.half)).denominator == 1


@pytest.mark.parametrize("text", ["1545.38T", "1545.38 TFLOP/s", "1545.38TFLOPS", "1.54538P", "1545.38 TFLOPs/sec"])
def test_one_rate_has_many_spellings(text: str) -> None:
    assert rate(text, "--flops-per-second").value == Fraction(154538 * TERA, 100)


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (rate, "400TFLOP", "is an amount of work, but a rate is wanted"),
        (rate, "400 TFLOP/h", "has an unknown unit"),
        (work, "3TFLOP/s", "is a rate, but an amount of work is wanted"),
        (read_number, "0", "but a number above 0 is wanted"),
        (read_number, "-5", "is negative"),
        (read_number, "five", "is not a number"),
        (read_number, "5 apples", "is not a number"),
        (read_number, "1" * 61, "is not a number"),
        (share, "120%", "is not a share above 0 and below 1"),
    ],
)
def test_what_is_no_such_number_is_refused_in_a_sentence(read, text: str, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=said) as refused:
        read(text, "it")
    assert "\n" not in str(refused.value)


def test_a_claim_is_a_share_or_the_rate_of_a_device() -> None:
    assert (claim("156.18%").kind, claim("156.18%").figure.value) == ("share", Fraction(15618, 10000))
    assert (claim("0.46").kind, claim("0.46").figure.value) == ("share", Fraction(46, 100))
    assert (claim("430 TFLOP/s").kind, claim("430 TFLOP/s").figure.value) == ("rate", 430 * TERA)
    with pytest.raises(UsageError, match="has no unit: write 43% for a utilisation, or 43TFLOP/s"):
        claim("43")
