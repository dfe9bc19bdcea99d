"""A table of claims: its rows, and those of a table that an audit wrote (tests/core/test_table.py has tables that are wrong)."""

from __future__ import annotations

from pathlib import Path

from reconcile.products.audit.claims import Claim, read_claims
from reconcile.products.audit.report import to_csv
from reconcile.products.audit.verdict import State, Verdict
from reconcile.products.user_tables import LONGEST


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


def test_a_cell_with_commas_is_to_be_quoted(tmp_path: Path) -> None:
    wrong = [
        c.wrong for c in read_claims(table(tmp_path, "model,input,figure\nnet:make,1,3,224,224,4.1G\nnet:make,4\n"))
    ]
    assert ['"1,3,224,224"' in text for text in wrong] == [True, False]
