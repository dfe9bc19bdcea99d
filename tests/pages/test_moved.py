"""``docs/moved.md``: nothing is left at an old place, and each new one is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "moved.md"
ROWS = re.findall(r"^\| `([\w.]+)(?:\.\*)?` \| `([\w.]+)(?:\.\*)?` \|$", PAGE.read_text(), re.MULTILINE)


def there(place: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    module, _, name = place.rpartition(".")
    try:
        importlib.import_module(place)
    except ModuleNotFoundError:
        try:
            return name in vars(importlib.import_module(module))
        except ModuleNotFoundError:
            return False
    return True


def test_every_row_is_true() -> None:
    pytest.importorskip("torch")  # some of the modules run beside it
    assert len(ROWS) == len(re.findall(r"(?m)^\| `", PAGE.read_text())) > 40
    assert [old for old, _ in ROWS if there(old) and old not in RE_EXPORTED] == []
    assert [new for _, new in ROWS if not there(new)] == []


RE_EXPORTED = {
    "reconcile.launch.request.OPTIONS",
    "reconcile.launch.request.by_parameter",
    "reconcile.launch.request.Option",
    "reconcile.adapters.pytorch.trace.Recorder",
    "reconcile.adapters.pytorch.trace.FusedCalls",
}
"""Names that their old modules import for their own use."""
