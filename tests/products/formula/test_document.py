"""docs/formula.md: its commands print what it shows, and its numbers are closed forms; a training step and a pair work alike."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from tests.own.conftest import Repository, repository
from tests.own.documents import consoles, files, not_printed

__all__ = ["repository"]

TEXT = (Path(__file__).parents[3] / "docs" / "formula.md").read_text()
DECODER, STRIDED = consoles(TEXT)
WEIGHTS = 2 * (4 * 64**2 + 2 * 64 * 256) + 64 * 100


def typed(command: str) -> Result:
    return CliRunner().invoke(cli, [*command.split()[1:], "--out", "out"], prog_name="reconcile")


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_decoder_prints_what_it_shows(repository: Repository) -> None:
    repository.write(net=files(TEXT)["net.py"])
    command, parts = DECODER
    done = typed(command)
    assert done.exit_code == 0, done.output
    assert not_printed(parts, done.stdout) == []
    data = json.loads((repository.folder / "out" / "net.make-formula.json").read_text())
    assert data["polynomials"]["flop_counter"]["total"] == [
        {"coefficient": "512", "powers": {"B": 1, "T": 2}},
        {"coefficient": str(2 * WEIGHTS), "powers": {"B": 1, "T": 1}},
    ]
    assert data["polynomials"]["thop"]["layers"]["head"] == [{"coefficient": "12800", "powers": {"B": 1, "T": 1}}]
    assert data["variables"] == {"B": [1, 2], "T": [16, 17, 18]}
    assert [point for point in data["held_out"] if point["B"] in (1, 2) and point["T"] in (16, 17, 18)] == []
    assert len(data["held_out"]) == 3
    assert data["not_polynomial"] == []
    module = runpy.run_path(str(repository.folder / "out" / "net.make-formula.py"))
    assert module["total"](7, 1000)["trace@torch"] == 512 * 7 * 1000**2 + 2 * WEIGHTS * 7 * 1000
    assert sum(module["layers"](B=7, T=1000)["thop"].values()) == 2 * WEIGHTS * 7 * 1000


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_stride_is_refused_as_it_shows(repository: Repository) -> None:
    repository.write(net=files(TEXT)["net.py"])
    command, parts = STRIDED
    done = typed(command)
    assert done.exit_code == 1, done.output
    assert not_printed(parts, done.stdout) == []
    data = json.loads((repository.folder / "out" / "net.halves-formula.json").read_text())
    assert data["polynomials"] == {}
    assert data["ranges"] == {"S": "16..96"}
    assert {(none["of"], none["layer"]) for none in data["not_polynomial"]} >= {("trace@torch", "(model)")}
