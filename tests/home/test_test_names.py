"""The name of a test is a sentence that fits a line of pytest's summary: at most 60 characters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 60


def long_names(source: str) -> list[str]:
    """Tests whose names are longer; a method's name counts as a function's does."""
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [f.name for f in functions if f.name.startswith("test_") and len(f.name) > LONGEST]


def test_every_name_is_short_enough_to_be_read() -> None:
    files = {path.relative_to(ROOT).as_posix(): long_names(path.read_text()) for path in (ROOT / "tests").rglob("*.py")}
    assert len(files) > 100
    assert {path: names for path, names in files.items() if names} == {}


@pytest.mark.parametrize(("longer", "found"), [(0, 0), (1, 1)])
def test_it_finds_one(longer: int, found: int) -> None:
    name = "test_" + "x" * (LONGEST - 5 + longer)
    assert long_names(f"class A:\n    def {name}(self):\n        def helper_{'y' * 99}(): pass") == [name] * found
