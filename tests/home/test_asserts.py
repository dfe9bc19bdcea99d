"""A failing test names its offenders: no assertion is a bare ``all()`` or ``any()``, whose failure shows no item."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.text


def terms(test: ast.expr) -> Iterator[ast.expr]:
    """What an assertion joins by ``not``, ``and`` and ``or``."""
    if isinstance(test, ast.UnaryOp):
        yield from terms(test.operand)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from terms(value)
    else:
        yield test


SUSPICIOUS = re.compile(r"\b(?:assert|not|and|or)[\s(\\]+(?:all|any)\(")
"""What a file has in it whose assertions are to be looked at: it is parsed."""


def nameless(source: str) -> list[int]:
    """The lines of assertions on ``all()`` or ``any()``."""
    return [
        node.lineno
        for node in (ast.walk(ast.parse(source)) if SUSPICIOUS.search(source) else ())
        if isinstance(node, ast.Assert)
        for term in terms(node.test)
        if isinstance(term, ast.Call) and isinstance(term.func, ast.Name) and term.func.id in ("all", "any")
    ]


def test_every_assertion_names_its_offenders() -> None:
    """Collect the offenders in a list and compare it with []; for ``any``, show what was there as the message."""
    files = {path.relative_to(ROOT).as_posix(): nameless(path.read_text()) for path in (ROOT / "tests").rglob("*.py")}
    assert len(files) > 100
    assert [f"{path}:{line}" for path, lines in sorted(files.items()) for line in lines] == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("assert all(x > 0 for x in y)", [1]),
        ("assert x\nassert not any(y), y", [2]),
        ("assert x and (y or not all(z))", [1]),
        ("assert [x for x in y if any(x)] == []\nall(x)", []),
    ],
)
def test_it_finds_one(source: str, lines: list[int]) -> None:
    assert nameless(source) == lines
