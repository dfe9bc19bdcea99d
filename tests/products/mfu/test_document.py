"""docs/mfu.md: every statement on it is what the tool prints today."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from tests.matrix.mfu_files import ROOT, files

TEXT = (ROOT / "docs" / "mfu.md").read_text()
SHOWN = re.findall(r"^```console\n\$ reconcile (.*)\n((?:.*\n)*?)```$", TEXT, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page."""
    for name, text in files(TEXT).items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "printed"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(command: str, printed: str, folder: Path) -> None:
    result = CliRunner().invoke(cli, shlex.split(command), prog_name="reconcile")
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == printed.splitlines()
