"""A failing test names its offenders: no assertion is a bare ``all()`` or ``any()``, whose failure shows no item."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.text
NAMELESS = re.compile(r"^ *assert (?:[^\[({\"'#\n]*\b(?:and|or|not) )?\(?(?:not )?(?:all|any)\(", re.MULTILINE)


def test_every_assertion_names_its_offenders() -> None:
    """Collect the offenders in a list and compare it with []; for ``any``, show what was there as the message."""
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    assert len(files) > 100
    assert [(name, found[0]) for name, text in files.items() for found in NAMELESS.finditer(text)] == []
    for wrong in ("all(x > 0 for x in y)", "not any(y), y", "x and not all(z)", "x or (all(z) and y)"):
        assert NAMELESS.search(f"assert {wrong}"), wrong
    assert not NAMELESS.search("assert [x for x in y if any(x)] == []\nall(x)")
