"""Scripts that are watched, from the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli

Watch = Callable[..., tuple[Result, dict[str, Any]]]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watch a script of this text; the report as JSON, empty where there is none."""
    monkeypatch.chdir(tmp_path)

    def watched(text: str, *arguments: str, before: tuple[str, ...] = ()) -> tuple[Result, dict[str, Any]]:
        Path("train.py").write_text(text)
        line = ["watch", "--quiet", "--format", "json", "--out", "out", *before, "train.py", *arguments]
        result = CliRunner().invoke(cli, line)
        report = Path("out/train.json")
        return result, json.loads(report.read_text()) if report.is_file() else {}

    return watched
