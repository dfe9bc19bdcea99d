"""Tests stand in the folder of what they test, or of the whole tool."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.text
WHOLE = {
    "browser",
    "foreign",
    "fuzz",
    "home",
    "layers",
    "networks",
    "own",
    "pairs",
    "plugin",
    "run",
    "training",
    "zoo",
}


def folders(path: Path) -> set[str]:
    """The folders in it that hold Python files, somewhere below."""
    return {folder.name for folder in path.iterdir() if folder.is_dir() and any(folder.rglob("*.py"))}


def test_a_folder_of_tests_is_of_the_package_or_the_whole_tool() -> None:
    assert folders(ROOT / "tests") - folders(ROOT / "reconcile") - {"adapters"} == WHOLE
    assert folders(ROOT / "tests/adapters") - folders(ROOT / "adapters") == set()
    assert folders(ROOT / "tests/adapters/counters") - folders(ROOT / "adapters/counters") == set()
