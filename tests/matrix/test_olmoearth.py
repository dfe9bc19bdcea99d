"""docs/olmoearth.md: its command gives its rows for three models, and closed forms give those of OlmoEarth's encoders."""

from __future__ import annotations

import csv
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.own.documents import commands
from tests.programs import output_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "olmoearth.md").read_text()
(COMMAND,) = (command for command in commands(TEXT) if command.startswith("reconcile "))
FILES = ROOT / "docs" / "olmoearth"
LIST = (FILES / "models.toml").read_text()
MODELS: list[dict[str, Any]] = tomllib.loads(LIST)["model"]
RUN = ("OlmoEarth nano", "Galileo nano", "Satlas")
"""Each loses something else."""
TASKS = (
    *((1, 120, 1), (1, 32, 1), (1, 64, 2), (12, 1, 2), (6, 1, 1)),
    *((1, 256, 2), (12, 64, 1), (1, 80, 1), (12, 4, 1), (12, 32, 1)),
)
"""Months, height and width in pixels, number of tasks."""
PLACES = [months * (side // min(side, 4)) ** 2 for months, side, times in TASKS for _ in range(times)]
"""Patches of 4 x 4 pixels, or of one, in each month; for each of the 13 tasks."""
SIZES = {"large": (1024, 24), "base": (768, 12), "tiny": (192, 12), "nano": (128, 4)}
"""Width and depth."""


def table() -> dict[str, list[str]]:
    """The cells of each model of the command."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TEXT.splitlines() if line.startswith("| ")]
    names = {model["name"] for model in MODELS}
    return {row[0]: row[1:] for row in rows if row[0] in names}


def giga(value: int, tasks: int) -> str:
    return f"{value / (tasks * 10**9):.2f}"


def encoder(size: str, one_group: bool = False, hidden: int = 0) -> tuple[int, int]:
    """MACs of thop and of what ran, in all 13 tasks: 12 bands of patches of 8 x 8 pixels, blocks, a norm, a projection."""
    width, depth = SIZES[size]
    old = new = 0
    for places in PLACES:
        tokens = places if one_group else 3 * places
        embedding = 64 * places * (hidden * (12 + width) if hidden else 12 * width)
        weights = embedding + 12 * width**2 * depth * tokens + width**2
        old += weights + 4 * tokens * width * (2 * depth + 1)
        new += weights + 2 * tokens**2 * width * depth
    return old, new


@pytest.mark.frameworks
@pytest.mark.matrix
@pytest.mark.heavy
def test_the_command_gives_the_rows_of_the_page(tmp_path: Path) -> None:
    lines = LIST.splitlines(keepends=True)
    kept = [line for line in lines if "name =" not in line or any(f'"{name}"' in line for name in RUN)]
    (tmp_path / "models.toml").write_text("".join(kept))
    shutil.copy(FILES / "figure.py", tmp_path)
    printed = output_of("-m", "reconcile", *shlex.split(COMMAND)[1:], folder=tmp_path)
    assert printed.splitlines()[-1] == "3 of 3 models reconciled; wrote sweep/README.md"
    with (tmp_path / "sweep" / "sweep.csv").open(newline="") as file:
        rows = {row["model"].partition("@")[0]: row for row in csv.DictReader(file) if row["counter"] == "thop"}
    assert {name: row["residual"] for name, row in rows.items()} == dict.fromkeys(RUN, "0")
    assert {name: [giga(int(row["reported"]), 13), giga(int(row["work"]), 26)] for name, row in rows.items()} == {
        name: table()[name][:2] for name in RUN
    }


@pytest.mark.parametrize(
    "model", [model for model in MODELS if model["torch"] == "figure:olmoearth"], ids=lambda model: model["name"]
)
def test_encoders_of_olmoearth_are_closed_forms(model: dict[str, Any]) -> None:
    old, new = encoder(**model["arguments"])
    assert table()[model["name"]][:3] == [giga(old, 13), giga(new, 13), f"{new / old:.2f}"]
