"""Numbers never round to nothing, and names show as written."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.report import text
from tests.report.tables import read

MARKUP = st.text(st.one_of(st.sampled_from("\\`*_{}[]<>()|~$&;#!-+=.:/@ \n1a"), st.characters()))
WHOLE = st.integers(min_value=1, max_value=10**20)


def test_numbers_have_separators_and_signs() -> None:
    assert text.number(2**53 + 1) == "9,007,199,254,740,993"
    assert [text.signed(n) for n in (1234, -1234, 0)] == ["+1,234", "-1,234", "0"]


@given(part=WHOLE, whole=WHOLE)
def test_a_percentage_is_within_half_a_tenth_of_the_truth(part: int, whole: int) -> None:
    shown = text.percent(part, whole)
    exact = Fraction(100 * part, whole)
    if shown.startswith("<"):
        assert 0 < exact < Fraction(1, 20)
    elif shown.startswith(">"):
        assert Fraction(9995, 100) <= exact < 100
    else:
        assert abs(Fraction(shown.replace(",", "").removesuffix(" %")) - exact) <= Fraction(1, 20)


@given(whole=WHOLE)
def test_only_nothing_is_0_percent_and_only_all_is_100(whole: int) -> None:
    assert text.percent(0, whole) == "0.0 %"
    assert text.percent(whole, whole) == "100.0 %"
    if whole > 1:
        assert text.percent(1, whole) != "0.0 %"
        assert text.percent(whole - 1, whole) != "100.0 %"
    assert text.percent(whole, 0) == ""


@given(MARKUP)
def test_a_name_in_a_markdown_cell_shows_as_written_and_does_nothing_else(name: str) -> None:
    page = read(f"# x\n\n| a | b |\n|--|--|\n| {text.markdown(name)} | next |\n")
    (table,) = page.tables
    ((shown, following),) = table.rows
    assert following == "next"
    assert shown.strip() == text.clean(name).strip()
    assert page.html == []


@given(MARKUP)
def test_prose_holds_no_html(written: str) -> None:
    page = read("# x\n\n" + text.prose(written))
    assert page.html == []
    assert page.headings == ["x"]


def test_prose_keeps_paragraphs_and_code() -> None:
    assert (
        text.prose("One `a_b|<c>`\nline.\n\n# two *stars*\n* item\n- > item")
        == "One `a_b|<c>` line.\n\n\\# two \\*stars\\*\n\n- item\n\n- \\> item"
    )


@pytest.mark.parametrize("char", ["\n", "\x1b", "\u202e", "\u2028", "\x00", "\ud800"])
def test_characters_that_would_not_show_are_shown(char: str) -> None:
    shown = text.clean(f"a{char}b")
    assert char not in shown
    assert shown.startswith("a\\")


def test_letters_of_any_script_stay() -> None:
    assert text.clean("слой/שכבה/層/👩‍💻") == "слой/שכבה/層/👩‍💻"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 FLOP"),
        (999, "999 FLOP"),
        (-999, "-999 FLOP"),
        (1_000, "1.0 kFLOP"),
        (1_049, "1.0 kFLOP"),
        (1_050, "1.1 kFLOP"),
        (999_949, "999.9 kFLOP"),
        (999_950, "1.0 MFLOP"),
        (249_809_920, "249.8 MFLOP"),
        (-7_715_946_496, "-7.7 GFLOP"),
        (10**30, "1.0 QFLOP"),
        (10**34, "10,000.0 QFLOP"),
    ],
)
def test_si_units_round_once_and_carry(value: int, shown: str) -> None:
    assert text.si(value) == shown
