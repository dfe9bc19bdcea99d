"""Packages of other people that register themselves: as pip would install them, and the tool run beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
    return subprocess.run(
        [sys.executable, "-m", "reconcile", *words],
        capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"},
    )  # fmt: skip
