"""Numbers never round to nothing."""

from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.number_format import format_signed, number, percent, si

WHOLE = st.integers(min_value=1, max_value=10**20)
FEW = settings(max_examples=40)


def test_numbers_have_separators_and_signs() -> None:
    assert number(2**53 + 1) == "9,007,199,254,740,993"
    assert [format_signed(n) for n in (1234, -1234, 0)] == ["+1,234", "-1,234", "0"]


@FEW
@given(part=WHOLE, whole=WHOLE)
def test_a_percentage_is_within_half_a_tenth_of_the_truth(part: int, whole: int) -> None:
    shown = percent(part, whole)
    exact = Fraction(100 * part, whole)
    if shown.startswith("<"):
        assert 0 < exact < Fraction(1, 20)
    elif shown.startswith(">"):
        assert Fraction(9995, 100) <= exact < 100
    else:
        assert abs(Fraction(shown.replace(",", "").removesuffix(" %")) - exact) <= Fraction(1, 20)


@FEW
@given(whole=WHOLE)
def test_only_nothing_is_0_percent_and_only_all_is_100(whole: int) -> None:
    assert percent(0, whole) == "0.0 %"
    assert percent(whole, whole) == "100.0 %"
    if whole > 1:
        assert percent(1, whole) != "0.0 %"
        assert percent(whole - 1, whole) != "100.0 %"
    assert percent(whole, 0) == ""


PREFIXES = " kMGTPEZYRQ"


@FEW
@given(st.one_of(st.integers(0, 10**6), st.integers(0, 10**33), st.integers(0, 32).map(lambda n: 10**n - 1)))
def test_an_si_number_is_within_half_of_its_last_digit(value: int) -> None:
    shown = si(value, "FLOPs")
    assert not value or si(-value, "FLOPs") == f"-{shown}"
    found = re.fullmatch(r"([\d,]+)(?:\.(\d+))? ([kMGTPEZYRQ]?)FLOPs", shown)
    assert found
    whole, decimals, prefix = found[1].replace(",", ""), found[2] or "", found[3]
    scale = 1000 ** (PREFIXES.index(prefix) if prefix else 0)
    assert abs(Fraction(whole + decimals) * scale / 10 ** len(decimals) - value) <= Fraction(
        scale, 2 * 10 ** len(decimals)
    )
    if prefix:
        assert len(whole + decimals) == 3 or prefix == "Q"
        assert whole != "0"
    else:
        assert (int(whole), decimals) == (value, "")
        assert value < 1000


@FEW
@given(a=st.integers(0, 10**33), b=st.integers(0, 10**33))
def test_a_smaller_number_is_never_shown_as_a_larger_one(a: int, b: int) -> None:
    def read(shown: str) -> Fraction:
        digits, unit = shown.split()
        prefix = unit.removesuffix("F")
        return Fraction(digits.replace(",", "")) * 1000 ** (PREFIXES.index(prefix) if prefix else 0)

    low, high = sorted((a, b))
    assert read(si(low, "F")) <= read(si(high, "F"))
