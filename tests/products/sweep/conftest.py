"""A folder with a package of functions, and with modules that may be mistaken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

PACKAGE = """
import os
from os import path
from .inner import made

class Big: pass
BACKEND = os.environ["KERAS_BACKEND"]

def small(weights="web", *, width=3): ...
def anything(*args, **more): ...
def takes(width): ...
def _hidden(): ...
if BACKEND == "torch":
    def torch_alone(): ...
print("loaded")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "nets" / "inner.py").write_text("def made(): ...\ndef other(): ...\n")
    (tmp_path / "breaks.py").write_text("raise ValueError('not today')\n")
    (tmp_path / "json.py").write_text("raise ValueError('not the one that is meant')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path
