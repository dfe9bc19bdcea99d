"""A table of claims: every row is read, or says why not, and no row ends the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.table import LONGEST
from reconcile.products.audit.claims import Claim, read_claims
from reconcile.products.audit.report import to_csv
from reconcile.products.audit.verdict import State, Verdict


def table(folder: Path, text: str) -> Path:
    path = folder / "claims.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_by_its_columns_in_any_order(tmp_path: Path) -> None:
    path = table(tmp_path, 'figure,model,claim,input\n17.58,timm:vit,GMACs,"1,3,224,224"\n\n4.1G,resnet50,,\n')
    assert read_claims(path) == [
        Claim(1, "timm:vit", "1,3,224,224", "17.58", "GMACs"),
        Claim(2, "resnet50", "", "4.1G"),
    ]
    assert [claim.printed for claim in read_claims(path)] == ["17.58 GMACs", "4.1G"]


def test_what_an_audit_wrote_is_read_by_its_columns_of_claims(tmp_path: Path) -> None:
    claim = Claim(1, "timm:vit", "1,3,224,224", "17.58", "GMACs", "=a table", "thop", "timm")
    verdict = Verdict(claim, State.NOT_RUN, reason="x" * (LONGEST + 1))
    assert read_claims(table(tmp_path, to_csv([verdict]))) == [claim]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("a", "this row has 1 cells, and the head has 3"),
        ("a,1,2,3", "this row has 4 cells, and the head has 3"),
        (",1,x", "this row has no model"),
        ("a,,x", "this row has no figure"),
        (f"a,{'1' * (LONGEST + 1)},x", f"its figure has {LONGEST + 1:,} characters"),
        (f"a,1,{'y' * 200_000}", "this row is not CSV"),
    ],
)
def test_a_row_that_cannot_be_read_says_why_and_ends_nothing(tmp_path: Path, row: str, says: str) -> None:
    before, wrong, after = read_claims(table(tmp_path, f"model,figure,source\nb,1,x\n{row}\nc,2,x\n"))
    assert (before.model, after.model, before.wrong, after.wrong) == ("b", "c", "", "")
    assert says in wrong.wrong
    assert wrong.row == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "have no column model"),
        ("model\na\n", "have no column figure"),
        ("model,figure,flops\na,1,2\n", "unknown column 'flops'"),
        ("model,figure,model\na,1,2\n", "have the column model twice"),
        ("model,figure\n", "have no rows"),
    ],
)
def test_a_table_without_its_columns_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_claims(table(tmp_path, text))


def test_text_that_a_spreadsheet_would_run_comes_back_as_it_was(tmp_path: Path) -> None:
    (claim,) = read_claims(table(tmp_path, "model,figure\n'=cmd(),1\n"))
    assert claim.model == "=cmd()"
