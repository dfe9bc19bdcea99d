"""A package of functions with modules that may be mistaken for it; and the command, on cells that run nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.products.sweep import cell
from tests.products.sweep.fakes import LOG, answer

Sweep = Callable[..., Result]

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


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """``reconcile sweep`` with these words in an empty folder: each cell reconciles, and its name is written to ``log``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setattr(cell, "run_cell", answer)
    return lambda *words: CliRunner().invoke(cli, ["sweep", *words], prog_name="reconcile")
