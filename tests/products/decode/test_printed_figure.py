"""Numbers as people print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.core.errors import UsageError
from reconcile.core.records import FLOP, MAC
from reconcile.products.decode.printed_figure import PARAMETER, figure


@pytest.mark.parametrize(
    ("text", "digits", "unit", "counts"),
    [
        ("25150826", 25_150_826, 1, ""),
        ("25,150,826", 25_150_826, 1, ""),
        ("25_150_826", 25_150_826, 1, ""),
        (" 8288 ", 8_288, 1, ""),
        ("3.86E+9", 386, 10**7, ""),
        ("4b", 4, 10**9, ""),
        ("7.70e9", 770, 10**7, ""),
        ("7.2000k", 7_200, 1, ""),
        ("~4.1G", 41, 10**8, ""),
        ("4.1 GMac", 41, 10**8, MAC),
        ("4.09 BFLOPS", 409, 10**7, FLOP),
        ("4,089,284,608 FLOPs", 4_089_284_608, 1, FLOP),
        ("4 089 284 608", 4_089_284_608, 1, ""),
        ("4\u202f089\u00a0284\u2009608 MACs", 4_089_284_608, 1, MAC),
        ("4.089.284.608", 4_089_284_608, 1, ""),
        ("4.1 × 10^9", 41, 10**8, ""),
        ("4.1x10**9", 41, 10**8, ""),
        ("4.1·10⁹ MACs", 41, 10**8, MAC),
        ("3.8 billion FLOPs", 38, 10**8, FLOP),
        ("300M MAdds", 300, 10**6, MAC),
        ("585 million multiply-adds", 585, 10**6, MAC),
        ("4089 MMACs", 4_089, 10**6, MAC),
        ("12 Gops", 12, 10**9, ""),
        ("25.6 M params", 256, 10**5, PARAMETER),
        ("25.6M #Params", 256, 10**5, PARAMETER),
        ("25,557,032 parameters", 25_557_032, 1, PARAMETER),
        ("25.6 Params (M)", 256, 10**5, PARAMETER),
        ("4.1 FLOPs (G)", 41, 10**8, FLOP),
    ],
)
def test_read(text: str, digits: int, unit: int, counts: str) -> None:
    read = figure(text)
    assert (read.digits, read.unit, read.counts) == (digits, unit, counts)


@pytest.mark.parametrize(
    ("text", "few"), [("2", True), ("300M", True), ("7.70e9", True), ("2.834G", False), ("2050", False)]
)
def test_digits_that_are_given(text: str, few: bool) -> None:
    assert figure(text).few == few


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "3,86e9", "1,23", "12,34,567", "1,234_567", "-", "1e", "e9", "1.e9", "0x10", "nan"),
        *("4.1x109", "٣", "1٣", "1.234.56", "4.1 GFLOPs MACs", "3.8 GMACs/s", "3.8GB", "1e-5", "2026-11-22"),
    ],
)
def test_no_number(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number"):
        figure(text)


@pytest.mark.parametrize("text", ["38.5 % MFU", "33%", "0.41 HFU", "312 TFLOPs/s", "480 TFLOPs per second"])
def test_a_utilisation_is_led_to_the_command_that_explains_it(text: str) -> None:
    with pytest.raises(UsageError, match="`reconcile mfu`"):
        figure(text)


def test_an_exact_zero_is_a_count() -> None:
    assert (figure("0").digits, figure("0 FLOPs").exact) == (0, True)


@given(st.integers(0, 10**15))
def test_an_exact_number_means_itself_and_no_other(value: int) -> None:
    for text in (str(value), f"{value:,}"):
        read = figure(text)
        assert read.exact
        assert [v for v in (value - 1, value, value + 1) if read.holds(v)] == [value]


@given(st.integers(10**6, 10**15), st.integers(1, 4))
def test_a_number_is_met_by_its_own_rounding(value: int, places: int) -> None:
    read = figure(f"{value:.{places}e}")
    assert read.holds(value)
    assert not read.holds(value + read.unit + 1)
    assert not read.holds(value - read.unit - 1)


def test_the_border_rounds_either_way() -> None:
    assert figure("3.8e9").holds(3_850_000_000)
    assert figure("3.9e9").holds(3_850_000_000)
    assert not figure("3.8e9").holds(3_850_000_001)
    assert figure("3.8e9").cuts(3_899_999_999)
    assert not figure("3.8e9").cuts(3_900_000_000)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-5", "is negative"),
        ("3.8-4.1G", "is a range"),
        ("12 to 15 GFLOPs", "is a range"),
        ("1–2 MACs", "is a range"),
        ("4.1", "write 4.1G or 4.1 GFLOPs"),
        ("1.2345k", "Leave out the digits"),
        ("0.1", "not a whole number"),
        ("1e100", "is too large for a count"),
        ("0.0 GFLOPs", "rounds to 0"),
    ],
)
def test_what_is_no_count_says_why(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        figure(text)
