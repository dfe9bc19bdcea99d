"""Modules of these tests in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.programs import run_program


def found_by(module: str, folder: Path, *words: str, paths: Iterable[Path] = ()) -> Any:
    """What a module prints as JSON behind the word FOUND, among the files of a folder."""
    done = run_program("-W", "ignore", "-m", f"tests.products.files.{module}", *words, folder=folder, paths=paths)
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND")), None)
    assert line, done.stderr[-3000:]
    return json.loads(line.removeprefix("FOUND"))
