"""A user's table: a row that cannot be read says why, and a head without its columns is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.user_tables import LONGEST, read_rows


def read(folder: Path, text: str) -> list[tuple[dict[str, str], str]]:
    path = folder / "claims.csv"
    path.write_text(text, encoding="utf-8")
    return read_rows(path, ("model", "figure", "source"), ("model", "figure"), "the claims", ("row", "model"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("a", "1 cells"),
        ("a,1,2,3", "4 cells"),
        (",1,x", "no model"),
        ("a,,x", "no figure"),
        (f"a,{'1' * (LONGEST + 1)},x", f"its figure has {LONGEST + 1:,} characters"),
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
