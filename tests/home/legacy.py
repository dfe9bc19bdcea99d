"""The files that run beside an old framework; `python -m tests.home.legacy` holds each to its lowest Python, by vermin."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

from reconcile.core import user_files

ROOT = Path(__file__).resolve().parents[2]
RUFF = {"3.6": "py37", "3.8": "py38", "3.9": "py39"}
"""What ruff calls the lowest Python of a file; it knows none below 3.7."""
POSTPONED = "from __future__ import annotations\n"


@functools.cache
def settings() -> dict[str, Any]:
    """What pyproject.toml says to ruff."""
    found: dict[str, Any] = user_files.read_toml(ROOT / "pyproject.toml", "the file")["tool"]["ruff"]
    return found


def legacy_files(python: str) -> list[str]:
    """The files whose lowest Python is that one."""
    return [name for name, version in settings()["per-file-target-version"].items() if version == RUFF[python]]


def violates(python: str, files: list[str], *options: str) -> int:
    """The exit status of vermin, which prints what these files use that this Python lacks."""
    # importlib.metadata: adapters/shared/distribution.py falls back to pkg_resources where it is missing.
    options += ("--quiet", "--violations", f"--target={python}-", "--exclude", "importlib.metadata")
    vermin = Path(sys.executable).with_name("vermin")
    return subprocess.run([vermin, *options, *files], cwd=ROOT).returncode if files else 0


def main() -> int:
    failed = 0
    for python in RUFF:
        files = legacy_files(python)
        # Annotations of these are text: nothing evaluates them where the file is imported.
        postponed = [file for file in files if POSTPONED in (ROOT / file).read_text()]
        failed |= violates(python, postponed)
        failed |= violates(python, [file for file in files if file not in postponed], "--eval-annotations")
    return failed


if __name__ == "__main__":
    sys.exit(main())
