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
from reconcile.core.errors import UsageError
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


def read(folder: Path, text: str) -> list[tuple[dict[str, str], str]]:
    path = folder / "claims.csv"
    path.write_text(text, encoding="utf-8")
    return table.read_rows(path, ("model", "figure", "source"), ("model", "figure"), "the claims", ("row", "model"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("a", "1 cells"),
        ("a,1,2,3", "4 cells"),
        (",1,x", "no model"),
        ("a,,x", "no figure"),
        (f"a,{'1' * (table.LONGEST + 1)},x", f"its figure has {table.LONGEST + 1:,} characters"),
        (f"a,1,{'y' * 200_000}", "is not CSV"),
    ],
)
def test_a_row_that_cannot_be_read_says_why_and_ends_nothing(tmp_path: Path, row: str, says: str) -> None:
    before, (_, wrong), after = read(tmp_path, f"model,figure,source\nb,1,x\n{row}\nc,2,'=x\n")
    assert (before, after) == (
        ({"model": "b", "figure": "1", "source": "x"}, ""),
        ({"model": "c", "figure": "2", "source": "=x"}, ""),
    )
    assert says in wrong


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column model"),
        ("model\na\n", "no column figure"),
        ("model,figure,flops\na,1,2\n", "unknown column 'flops'"),
        ("model,figure,model\na,1,2\n", "the column model twice"),
        ("model,figure\n", "no rows"),
        (f"model,{'y' * 200_000}\n", "not CSV"),
    ],
)
def test_a_table_without_its_columns_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(tmp_path, text)


def test_the_head_of_a_written_table_may_have_other_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "row,model\n1,a\n")[0][0] == {"model": "a"}
