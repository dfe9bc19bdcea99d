"""The committed audits: their pages say what their tables say, and a part of each is what an audit of today says."""

from __future__ import annotations

import csv
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconcile.core.table import format_csv
from reconcile.products.audit.claims import COLUMNS, Claim, read_claims

AUDITS = Path(__file__).resolve().parents[3] / "reports" / "audit"
TORCHVISION = AUDITS / "torchvision"
PART = ("torchvision:resnet50", "torchvision:vit_b_16(image_size=384)", "torchvision:alexnet")
"""Models that are audited again: one with two figures, one that is made for its pictures, one without norms."""
OF_A_TABLE = {"row", "readings", "numbers", "by chance", "evidence"}
"""What depends on the other rows of the table: a part of it knows less of its source."""


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "audit.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_of_all_audits_is_not_stale() -> None:
    audits = importlib.import_module("docs.audits")
    assert (AUDITS / "README.md").read_text() == audits.page()


def get_ops() -> list[Claim]:
    """What torchvision's test of its ``_ops`` counts beside PyTorch 2.13.0."""
    return read_claims(TORCHVISION / "get_ops.csv")


def audit(claims: list[Claim], folder: Path) -> subprocess.CompletedProcess[str]:
    """An audit of today of these claims, in a folder."""
    (folder / "claims.csv").write_text(format_csv([COLUMNS, *([getattr(c, n) for n in COLUMNS] for c in claims)]))
    words = [sys.executable, "-m", "reconcile", "audit", "claims.csv", "--out", "out"]
    there = {**os.environ, "PYTHONPATH": str(AUDITS.parents[1])}
    return subprocess.run(words, cwd=folder, env=there, capture_output=True, text=True, check=False)


@pytest.mark.matrix
def test_an_audit_of_today_says_the_same_of_a_part(tmp_path: Path) -> None:
    """`make audit` writes all of it. The environment pins the libraries."""
    chosen = [claim for claim in read_claims(TORCHVISION / "audit.csv") if claim.model in PART]
    done = audit(chosen, tmp_path)
    assert done.returncode == 0, done.stderr
    committed = {row["row"]: row for row in rows(TORCHVISION)}
    again = rows(tmp_path / "out")
    assert len(again) == len(chosen) > len(PART)
    for claim, row in zip(chosen, again, strict=True):
        there = committed[str(claim.row)]
        assert {name: row[name] for name in row.keys() - OF_A_TABLE} == {n: there[n] for n in there.keys() - OF_A_TABLE}
