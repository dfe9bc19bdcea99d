"""Whole audits of small models: bad rows beside good ones, and a second audit."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from tests.cli.conftest import sentence

ROOT = Path(__file__).resolve().parents[3]
OUT, IN, SIDE = 8, 3, 10
MACS = OUT * IN * 9 * SIDE * SIDE
NETS = """
import os
import torch


def conv():
    with open(os.environ["LOG"], "a") as log:
        log.write("conv\\n")
    return torch.nn.Conv2d(3, 8, 3, bias=False)


def normed():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8))


def broken():
    raise ValueError("no such width")


def crash():
    os.abort()
"""
PICTURE = '"1,3,12,12"'
GOOD = [
    f"nets:conv,{PICTURE},{MACS},MACs",
    f"nets:conv,{PICTURE},{MACS / 1e3:.1f},KFLOPs",
    f"nets:conv,{PICTURE},5.5,KMACs",
]
BAD = [
    f"nets:broken,{PICTURE},1.0,G",
    f"nets:crash,{PICTURE},1.0,G",
    f"nets:nowhere,{PICTURE},1.0,G",
    f"nets:conv,{PICTURE},seven,G",
    f"nets:conv,wide,{MACS},MACs",
    f"\"=cmd|'/C calc'!A0\",{PICTURE},1.0,G",
    f"\x1b[2Jx:y,{PICTURE},1.0,G",
    "nets:conv",
]


def audit(folder: Path, *rows: str, head: str = "model,input,figure,claim") -> subprocess.CompletedProcess[str]:
    (folder / "nets.py").write_text(NETS)
    (folder / "claims.csv").write_text("\n".join([head, *rows]) + "\n")
    words = [sys.executable, "-m", "reconcile", "audit", "claims.csv", "--jobs", "1"]
    there = {**os.environ, "PYTHONPATH": str(ROOT), "LOG": str(folder / "log")}
    return subprocess.run(words, cwd=folder, env=there, capture_output=True, text=True, check=False)


def found(folder: Path) -> list[dict[str, str]]:
    with (folder / "audit" / "audit.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.frameworks
@pytest.mark.slow
def test_every_row_has_its_verdict_and_no_model_is_made_again(tmp_path: Path) -> None:
    done = audit(tmp_path, *GOOD, *BAD)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert f"2 of {len(GOOD) + len(BAD)} figures explained" in done.stdout
    rows = found(tmp_path)
    assert [row["verdict"] for row in rows] == [
        "explained",
        "explained",
        "not explained",
        *["not run"] * 3,
        *["not read"] * 5,
    ]
    assert (rows[0]["number"], rows[0]["unit"]) == (str(MACS), "MAC")
    assert rows[1]["number"] == str(MACS)
    assert [row for row in rows[2:] if not row["reason"]] == []
    assert "no such width" in rows[3]["reason"]
    page = (tmp_path / "audit" / "README.md").read_text()
    assert "| are called KFLOPs and count MACs | 1 | 50.0 % |" in page
    assert "\x1b" not in page + done.stdout + done.stderr
    made = (tmp_path / "log").read_text()
    again = audit(tmp_path, *GOOD, f"nets:conv,{PICTURE},{2 * MACS},FLOPs")
    assert "3 of 4 figures explained; 1 models, 1 of them before" in again.stdout
    assert (tmp_path / "log").read_text() == made
    assert found(tmp_path)[3]["unit"] == "FLOP"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing.csv"], "cannot read the claims nothing.csv: No such file or directory."),
        (["claims.csv", "--environment", "x"], "unknown environment 'x'"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    (tmp_path / "claims.csv").write_text("model,figure\na,b\n")
    (tmp_path / "nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    assert says in sentence(CliRunner().invoke(cli, ["audit", *words]))


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_counter_that_a_row_names_runs_where_its_trace_has_no_such_number(tmp_path: Path) -> None:
    """thop counts 4 for each element of an affine batch norm, as no reading of the trace does."""
    normed = MACS + 4 * OUT * SIDE * SIDE
    rows = (f"nets:normed,{PICTURE},{normed},MACs,{named}" for named in ("thop 0.1", "fvcore"))
    done = audit(tmp_path, *rows, head="model,input,figure,claim,counter")
    assert "1 of 2 figures explained" in done.stdout, done.stderr
    first, second = found(tmp_path)
    assert (first["verdict"], first["number"]) == ("explained", str(normed))
    assert (second["verdict"], second["reason"].partition("Look further: reconcile ")[2].split()[0]) == (
        "not explained",
        "decode",
    )
