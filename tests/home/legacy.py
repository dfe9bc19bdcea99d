"""The files that run beside an old framework; `python -m tests.home.legacy` holds each to its lowest Python, by vermin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from reconcile.core import user_files

ROOT = Path(__file__).resolve().parents[2]
RUFF = {"3.6": "py37", "3.9": "py39"}
"""What ruff calls the lowest Python of a file; it knows none below 3.7."""


def settings() -> dict[str, Any]:
    """What pyproject.toml says to ruff."""
    found: dict[str, Any] = user_files.toml(ROOT / "pyproject.toml", "the file")["tool"]["ruff"]
    return found


def legacy_files(python: str) -> list[str]:
    """The files whose lowest Python is that one."""
    return [name for name, version in settings()["per-file-target-version"].items() if version == RUFF[python]]


def main() -> int:
    # importlib.metadata: adapters/pytorch/tracing/records.py falls back to pkg_resources where it is missing.
    vermin = [str(Path(sys.executable).with_name("vermin")), "--quiet", "--violations", "--eval-annotations"]
    vermin += ["--exclude", "importlib.metadata"]
    runs = [subprocess.run([*vermin, f"--target={python}-", *legacy_files(python)], cwd=ROOT) for python in RUFF]
    return max(run.returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main())
