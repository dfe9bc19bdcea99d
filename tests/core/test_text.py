"""Numbers never round to nothing, and names show as written."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core import text
from tests.report.tables import read

MARKUP = st.text(st.one_of(st.sampled_from("\\`*_{}[]<>()|~$&;#!-+=.:/@ \n1a"), st.characters()))
WHOLE = st.integers(min_value=1, max_value=10**20)
FEW = settings(max_examples=40)


def test_numbers_have_separators_and_signs() -> None:
    assert text.number(2**53 + 1) == "9,007,199,254,740,993"
    assert [text.format_signed(n) for n in (1234, -1234, 0)] == ["+1,234", "-1,234", "0"]


@FEW
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


@FEW
@given(whole=WHOLE)
def test_only_nothing_is_0_percent_and_only_all_is_100(whole: int) -> None:
    assert text.percent(0, whole) == "0.0 %"
    assert text.percent(whole, whole) == "100.0 %"
    if whole > 1:
        assert text.percent(1, whole) != "0.0 %"
        assert text.percent(whole - 1, whole) != "100.0 %"
    assert text.percent(whole, 0) == ""


PREFIXES = " kMGTPEZYRQ"


@FEW
@given(st.one_of(st.integers(0, 10**6), st.integers(0, 10**33), st.integers(0, 32).map(lambda n: 10**n - 1)))
def test_an_si_number_is_within_half_of_its_last_digit(value: int) -> None:
    shown = text.si(value, "FLOPs")
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
    assert read(text.si(low, "F")) <= read(text.si(high, "F"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 MACs"),
        (999, "999 MACs"),
        (1000, "1.00 kMACs"),
        (9_995, "10.0 kMACs"),
        (99_950, "100 kMACs"),
        (999_499, "999 kMACs"),
        (999_500, "1.00 MMACs"),
        (4_089_184_256, "4.09 GMACs"),
        (-3_632_960, "-3.63 MMACs"),
        (10**33, "1,000 QMACs"),
    ],
)
def test_si_numbers(value: int, shown: str) -> None:
    assert text.si(value, "MACs") == shown


@FEW
@given(MARKUP)
def test_a_name_in_a_markdown_cell_only_shows_as_written(name: str) -> None:
    page = read(f"# x\n\n| a | b |\n|--|--|\n| {text.markdown(name)} | next |\n")
    (table,) = page.tables
    ((shown, following),) = table.rows
    assert following == "next"
    assert shown.strip() == text.clean(name).strip()
    assert page.html == []


@FEW
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


WORDS = st.lists(st.binary(max_size=6).map(lambda raw: raw.replace(b"\0", b"")), min_size=1, max_size=20)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@settings(max_examples=10, deadline=None)
@given(WORDS)
def test_a_shell_reads_a_command_as_it_was_meant(words: list[bytes]) -> None:
    """Also file names that are no text, or act on a terminal."""
    line = text.quote_words(["printf", r"%s\0", *(raw.decode("utf-8", "surrogateescape") for raw in words)])
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == words


def test_a_plain_command_is_as_it_was() -> None:
    assert text.quote_words(["run", "a b", "it's", "größe", ""]) == shlex.join(["run", "a b", "it's", "größe", ""])
    assert text.quote_words(["m\x1b[31m\n.onnx", "\ud800"]) == r"$'m\x1b[31m\x0a.onnx' $'\xed\xa0\x80'"
