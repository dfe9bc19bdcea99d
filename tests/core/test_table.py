"""CSV: no spreadsheet takes a name for a formula, numbers stay numbers, and what is read back is what was written."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.align import mapping
from reconcile.core import table
from reconcile.core.results import Match
from reconcile.report.csv import layers_csv, to_csv
from tests.report import samples

FORMULA = '=HYPERLINK("x","y")'
STARTS = "=+-@\t\r\n＝＋－＠"
TEXTS = st.text(
    st.one_of(
        st.sampled_from("'=+-@\t\r\n＝" + '1a ,"'), st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    )
)


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("value", [0, 5, -5, -(2**80), "a-b", "", "x=1", "(no layer)"])
def test_numbers_and_other_texts_are_as_they_were(value: object) -> None:
    assert cells(table.format_csv([[value, "end"]])) == [[str(value), "end"]]


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_what_is_read_back_is_what_was_written(row: list[str]) -> None:
    row = [*row, *(f"{start}1" for start in STARTS), "end"]
    (found,) = cells(table.format_csv([row]))
    assert [table.read_cell(cell) for cell in found] == row
    assert [cell for cell in found if cell[:1] and cell[0] in STARTS] == []


def test_a_nul_is_written_as_its_escape() -> None:
    assert cells(table.format_csv([["a\0b", "end"]])) == [["a\\x00b", "end"]]


ODD = "a\x1b[31m\n::error::b\r\u202e"
SHOWN = r"a\x1b[31m\n::error::b\r\u202e"


def test_the_csv_of_a_report_shows_names_as_written() -> None:
    result = replace(samples.renamed(samples.unexplained(), "loop", ODD), model=ODD)
    for text in (to_csv(result), layers_csv(result)):
        assert [c for c in text if not c.isprintable() and c != "\n"] == []
        assert {len(row) for row in cells(text)} == {len(cells(text)[0])}
        assert SHOWN in {cell for row in cells(text) for cell in row}


def test_a_report_still_adds_up_with_a_layer_that_is_a_formula() -> None:
    before = cells(to_csv(samples.unexplained()))
    after = cells(to_csv(replace(samples.renamed(samples.unexplained(), "loop", FORMULA), model="-m")))
    amount = before[0].index("amount")
    assert [row[amount] for row in after] == [row[amount] for row in before]
    assert [row for row in after if row[amount].startswith("-")], after
    assert {row[0] for row in after[1:]} == {"'-m"}
    assert f"'{FORMULA}" in {row[3] for row in after}
    assert FORMULA not in {cell for row in after for cell in row}


def test_a_mapping_file_writes_and_reads_layers_like_formulas(tmp_path: Path) -> None:
    rows = (Match("-a", {"tf": ("-a",), "torch": ("@b",)}, "name", ""),)
    text = mapping.format_mapping(rows, "x\ny,+z+w\x1b")
    assert "'-a,'-a,'@b,name," in text.splitlines()
    assert "\x1b" not in text
    file = tmp_path / "map.csv"
    file.write_text(text, encoding="utf-8")
    ((_, line),) = mapping._lines(file, ("tf", "torch"))
    assert (line["layer"], line["tf"], line["torch"]) == ("-a", "-a", "@b")
