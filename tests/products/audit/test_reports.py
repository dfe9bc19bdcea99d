"""The committed audits: their pages say what their tables say, and a part of each is what an audit of today says."""

from __future__ import annotations

import csv
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reconcile.core.table import format_csv
from reconcile.products.audit.claims import COLUMNS, Claim, read_claims

AUDITS = Path(__file__).resolve().parents[3] / "reports" / "audit"
TIMM, TORCHVISION, ZOO = (AUDITS / name for name in ("timm", "torchvision", "zoo"))
PUBLISHED = 4005
"""Rows of timm's results in the file that the claims were made of."""
PART = ("torchvision:resnet50", "torchvision:vit_b_16(image_size=384)", "torchvision:alexnet")
"""Models that are audited again: one with two figures, one that is made for its pictures, one without norms."""
OF_A_TABLE = {"row", "readings", "numbers", "by chance", "evidence"}
"""What depends on the other rows of the table: a part of it knows less of its source."""


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "audit.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_figures_of_timm() -> None:
    """At least 95 % of the published rows; every other has its reason."""
    found = rows(TIMM)
    printed = [int(row["source"].rpartition("; ")[2].split()[0]) for row in found]
    assert sum(printed) == PUBLISHED
    explained = sum(n for n, row in zip(printed, found, strict=True) if row["verdict"] == "explained")
    assert explained >= 0.95 * PUBLISHED
    assert [row for row in found if not row["reading"] and not row["reason"]] == []
    vit = {r["figure"]: r for r in found if (r["model"], r["input"]) == ("timm:vit_base_patch16_224", "1,3,224,224")}
    # 12 blocks of 12 heads: two products of 197 x 197 x 64, and a norm of 5 per element before and after each attention
    attention, norms = 12 * 12 * 2 * 197 * 197 * 64, 25 * 5 * 197 * 768
    assert int(vit["16.87"]["number"]) + attention == int(vit["17.58"]["number"])
    assert int(vit["16.87"]["macs"]) == int(vit["17.58"]["number"]) - norms
    assert vit["16.87"]["left out"].startswith("op-not-counted: 715,327,488 products of 12 layers are not in it")


def test_the_page_of_all_audits_is_not_stale() -> None:
    audits = importlib.import_module("docs.audits")
    assert (AUDITS / "README.md").read_text() == audits.page()


def get_ops() -> list[Claim]:
    """What torchvision's test of its ``_ops`` counts beside PyTorch 2.13.0."""
    return read_claims(TORCHVISION / "get_ops.csv")


def test_what_is_missing_where_torchvision_s_own_test_fails() -> None:
    """Attention's two products, which its ViTs run as one op on a CPU; or the mask head of objects that were not found: four
    convolutions of 256 x 256 x 3 x 3 on 14 x 14, one of 2 x 2 onto 28 x 28, and one onto 91 classes there."""
    sizes = {"b": (12, 768), "l": (24, 1024), "h": (32, 1280)}
    macs = {(row["model"], row["input"]): int(row["macs"]) for row in rows(TORCHVISION)}
    mask = (4 * 256 * 9 * 14**2 + 256 * 4 * 14**2 + 91 * 28**2) * 256
    wrong = []
    for claim in get_ops():
        vit = re.match(r"torchvision:vit_(.)_(\d+)", claim.model)
        if vit:
            layers, hidden = sizes[vit[1]]
            tokens = (int(claim.input.rpartition(",")[2]) // int(vit[2])) ** 2 + 1
            counted = macs[claim.model, claim.input] - 2 * layers * tokens**2 * hidden
        else:
            objects = int(claim.source.split(", ")[1].split()[0])
            counted = macs["torchvision:detection.fasterrcnn_resnet50_fpn_v2", claim.input] + objects * mask
        if claim.printed != f"{round(counted / 1e9, 3)} GFLOPS":
            wrong.append((claim.model, claim.printed, counted))
    assert wrong == []


@pytest.mark.matrix
def test_the_audit_names_what_is_missing_there(tmp_path: Path) -> None:
    chosen = [claim for claim in get_ops() if claim.model.startswith("torchvision:vit_")]
    assert audit(chosen, tmp_path).returncode == 0
    found = rows(tmp_path / "out")
    assert {row["left out"].partition(":")[0] for row in found} == {"attention-left-out"}
    assert len(found) == len(chosen)


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
