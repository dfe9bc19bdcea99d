"""The committed sweeps of libraries: their tables say what the page says, and an independent count agrees with each work.

``make transformers`` and ``make diffusers`` write them from environments that have the libraries.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "reports"
TRANSFORMERS, TRAINING, DIFFUSERS = (PAGES / name for name in ("transformers", "transformers/training", "diffusers"))
CALLS = {TRANSFORMERS: 250, DIFFUSERS: 50}
"""Sweeps of a call, and how many models ran, at least."""
SHARES = {TRANSFORMERS: 0.98, TRAINING: 0.95, DIFFUSERS: 0.95}
"""The least share of those that ran which are reconciled: in a call, and in a training step of a sample."""


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


@pytest.mark.parametrize("folder", SHARES, ids=lambda folder: folder.name)
def test_the_share_that_is_reconciled(folder: Path) -> None:
    """Of the models whose work was traced, those all of whose counters end at that work with residual 0, or cannot count it."""
    by_model: dict[str, list[dict[str, str]]] = {}
    for row in rows(folder / "sweep.csv"):
        by_model.setdefault(row["model"], []).append(row)
    ran = {model: own for model, own in by_model.items() if any(r["counter"] == "trace" for r in own)}
    closed = [m for m, own in ran.items() if all(r["state"] in ("equal", "explained", "not_comparable") for r in own)]
    residuals = [(r["model"], r["counter"]) for own in ran.values() for r in own if r["residual"] not in ("", "0")]
    assert [pair for pair in residuals if pair[0] in closed] == []
    assert len(closed) >= SHARES[folder] * len(ran)
    assert len(ran) >= CALLS.get(folder, CALLS[TRANSFORMERS])


@pytest.mark.parametrize("folder", SHARES, ids=lambda folder: folder.name)
def test_the_page_has_every_model(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    models = {row["model"] for row in rows(folder / "sweep.csv")}
    shown = set(re.findall(r"^\| ([\w.]+) \|", text, re.MULTILINE))
    assert shown >= models


@pytest.mark.parametrize("folder", CALLS, ids=lambda folder: folder.name)
def test_an_independent_count_agrees(folder: Path) -> None:
    counted = rows(folder / "independent.csv")
    assert len(counted) >= CALLS[folder]
    assert [row for row in counted if row["work"] != row["independent count"]] == []
    work = {row["model"]: row["work"] for row in rows(folder / "sweep.csv") if row["counter"] == "trace"}
    assert [row["model"] for row in counted if work.get(row["model"]) != row["work"]] == []
