"""Tests stand in the folder of what they test; CONTRIBUTING.md names the folders of tests of the whole tool, and ARCHITECTURE.md
those of the package in the order of the floors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconcile.core.registry import PRODUCT_FOLDERS
from tests.home.test_imports import CALLBACKS, FLOORS

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


def test_the_rule_names_every_folder_of_the_whole_tool() -> None:
    rule = (ROOT / "CONTRIBUTING.md").read_text().partition("## Tests\n")[2].partition("\n- ")[0]
    assert [name for name in sorted(WHOLE) if f"`{name}`" not in rule and f"`tests/{name}`" not in rule] == []


def test_the_architecture_names_every_folder_from_the_top_down() -> None:
    core, products = (ROOT / "ARCHITECTURE.md").read_text().split("| product |")
    rows = re.findall(r"^\| `(?:reconcile/)?(\w+)[`./]", core.partition("| folder of the core |")[2], re.MULTILINE)
    floors = [name for name in reversed(FLOORS) if name not in (*CALLBACKS, "products", "pytest_plugin")]
    assert list(dict.fromkeys(rows)) == floors
    assert re.findall(r"^\| `reconcile/products/(\w+)/`", products, re.MULTILINE) == list(PRODUCT_FOLDERS)
