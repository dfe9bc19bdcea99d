"""The committed sweep of transformers: its tables say what the page says, and an independent count agrees with each work.

``make transformers`` writes them from an environment that has the library.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "reports" / "transformers"
ENOUGH = 250
"""Architectures that ran, at least."""
SHARES = {PAGE: (0.98, ENOUGH), PAGE / "training": (0.95, ENOUGH)}
"""The least share of those that ran which are reconciled, and how many ran: in a call, and in a training step of a sample."""


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


@pytest.mark.parametrize("folder", SHARES, ids=["call", "training"])
def test_the_share_that_is_reconciled(folder: Path) -> None:
    """Of the models whose work was traced, those all of whose counters end at that work with residual 0, or cannot count it."""
    by_model: dict[str, list[dict[str, str]]] = {}
    for row in rows(folder / "sweep.csv"):
        by_model.setdefault(row["model"], []).append(row)
    ran = {model: own for model, own in by_model.items() if any(r["counter"] == "trace" for r in own)}
    closed = [m for m, own in ran.items() if all(r["state"] in ("equal", "explained", "not_comparable") for r in own)]
    residuals = [(r["model"], r["counter"]) for own in ran.values() for r in own if r["residual"] not in ("", "0")]
    assert [pair for pair in residuals if pair[0] in closed] == []
    share, enough = SHARES[folder]
    assert len(closed) >= share * len(ran)
    assert len(ran) >= enough


def test_the_page_says_how_many() -> None:
    text = (PAGE / "README.md").read_text()
    models = {row["model"] for row in rows(PAGE / "sweep.csv")}
    shown = set(re.findall(r"^\| ([\w.]+) \|", text, re.MULTILINE))
    assert shown >= models


def test_an_independent_count_agrees() -> None:
    counted = rows(PAGE / "independent.csv")
    assert len(counted) >= ENOUGH
    assert [row for row in counted if row["work"] != row["independent count"]] == []
    work = {row["model"]: row["work"] for row in rows(PAGE / "sweep.csv") if row["counter"] == "trace"}
    assert [row["model"] for row in counted if work.get(row["model"]) != row["work"]] == []
