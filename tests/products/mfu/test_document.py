"""docs/mfu.md: every statement on it is what the tool prints today."""

from __future__ import annotations

import re
import shlex
from fractions import Fraction
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


def test_the_factors_of_the_threads_are_quotients() -> None:
    rows = re.findall(r"^\| \S+#\d+: .*? \| ([\d.,]+) \| ([\d.,]+) \| (\S+) \| (.*?)\|$", TEXT, re.MULTILINE)
    assert len(rows) == 8
    for divisor, peak, shown, claims in rows:
        factor = Fraction(divisor.replace(",", "")) / Fraction(peak.replace(",", ""))
        assert (f"{float(factor):.5g}" if "." in shown else str(factor)) == shown, (divisor, peak)
        for claimed, right in re.findall(r"([\d.]+) % is ([\d.]+) %", claims):
            assert f"{float(Fraction(claimed) * factor):.2f}" == right, claims


def test_a_trainers_file_is_read(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["mfu", "trainers", "utils.py"], prog_name="reconcile")
    assert result.exit_code == 0
    # An H100 with sparsity: 1,979 over 989.4.
    assert re.search(r"\| NVIDIA H100 SXM5 80GB \|.*\| 2\.0002 \|", result.stdout)
