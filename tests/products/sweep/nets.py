"""Lists of models as a user writes them, and the environments that they may name."""

from __future__ import annotations

from pathlib import Path

from reconcile.launch.environments import definitions as environments
from reconcile.products.sweep import listfile
from reconcile.products.sweep.cells import Cell

THERE = environments.load(None)
HERE = [THERE["current"]]


def listed(folder: Path, text: str) -> list[Cell]:
    (folder / "list.toml").write_text(text)
    return listfile.read_list(Path("list.toml"), THERE, HERE)
