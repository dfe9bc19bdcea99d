"""``reconcile check`` of a model of the user's own: it takes what ``reconcile run`` takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli

NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, {}))
"""
CHECK = ("check", "--torch", "net:Net", "--input", "1,3,32,32")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(NET.format(3))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="reconcile")


def test_a_comment_without_a_baseline_says_how_to_take_one(folder: Path) -> None:
    said = call(*CHECK, "--format", "github")
    assert said.exit_code == 2
    first, *_, fence, command, end = said.stdout.splitlines()
    assert first == "❌ **net.Net: there is no baseline yet**"
    assert (fence, command, end) == ("```sh", f"reconcile {' '.join(CHECK)} --update", "```")


def test_a_file_without_a_pair_is_not_sent_to_take_a_baseline(folder: Path) -> None:
    for command in ("check", "run", "matrix"):
        said = call(command, "--model", "./net.py")
        assert said.exit_code == 2
        assert "./net.py defines no PAIR, so it is no pair file." in said.stderr
        assert "--torch, --tf or --jax net:Net --input SHAPE" in said.stderr


def test_a_model_beside_two_files_is_refused(folder: Path) -> None:
    said = call("check", "a.json", "b.json", "--torch", "net:Net")
    assert (said.exit_code, said.stderr) == (
        2,
        "Error: --torch belongs to a run, and two saved files need none. Leave it out.\n",
    )


@pytest.mark.frameworks
@pytest.mark.slow
def test_an_own_model_is_held_against_its_baseline(folder: Path) -> None:
    """30 x 30 places of 8 filters of 3 x 3 x 3 taps, and 28 x 28 of 5 x 5 x 3."""
    taken = call(*CHECK, "--update")
    assert taken.exit_code == 0, taken.output
    assert call(*CHECK).exit_code == 0
    (folder / "net.py").write_text(NET.format(5))
    moved = call(*CHECK)
    assert moved.exit_code == 1
    before, after = 2 * 30 * 30 * 8 * 27, 2 * 28 * 28 * 8 * 75
    assert f"{before:,}" in moved.stdout
    assert f"{after:,}" in moved.stdout
    other = call("check", "--torch", "net:Net", "--input", "1,3,16,16")
    assert other.exit_code == 2
    assert "Run with the same model, inputs and parameters" in other.stderr
