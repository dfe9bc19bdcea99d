"""Figures of counters that do not run unasked elsewhere, of models of one's own: as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli

IN, MIDDLE, OUT = 8, 10, 6
pytestmark = [pytest.mark.slow, pytest.mark.frameworks]

NETS = f"""
def two():
    import torch

    return torch.nn.Sequential(torch.nn.Linear({IN}, {MIDDLE}), torch.nn.Linear({MIDDLE}, {OUT}))

"""


def decoded(folder: Path, monkeypatch: pytest.MonkeyPatch, *args: object) -> str:
    """The first reading of a figure that is explained."""
    (folder / "nets.py").write_text(NETS)
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, ["decode", *map(str, args), "--quiet"], prog_name="reconcile")
    assert done.exit_code == 0, done.output
    return done.output.partition("explained: ")[2].strip()


def test_torchinfo_is_read_where_nothing_else_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchinfo multiplies parameters, biases included, by places: here once. Nobody named it."""
    total = (IN + 1) * MIDDLE + (MIDDLE + 1) * OUT
    found = decoded(tmp_path, monkeypatch, "--torch", "nets:two", "--input", f"1,{IN}", 2 * total)
    assert found in ("torchinfo × 2 (it counts MACs).", "ptflops@aten × 2 (it counts MACs).")
