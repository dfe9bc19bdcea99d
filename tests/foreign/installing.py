"""Packages of other people that register themselves: as pip would install them, and the tool run beside them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.programs import ROOT, run_program

__all__ = ["ROOT", "installed_as", "reconcile"]


def installed_as(site: Path, source: Path, name: str, point: str) -> Path:
    """A folder that holds the package as pip would leave it there, outside the repository."""
    shutil.copytree(source, site, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(point)
    return site


def reconcile(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the tool in ``folder``, which is made, with the packages of ``site``."""
    folder.mkdir(exist_ok=True)
    return run_program("-m", "reconcile", *words, folder=folder, paths=[site])
