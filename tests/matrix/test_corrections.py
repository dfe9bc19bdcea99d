"""docs/corrections.md: every command prints what the page shows."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.matrix.llm_page import python
from tests.own.documents import consoles, not_printed
from tests.programs import run_program

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "corrections.md").read_text()
REFUSED = consoles(TEXT.replace("```text\n$ ", "```console\n$ "))
SHOWN = consoles(TEXT)
"""What exits with 0; the others of REFUSED exit with 1."""
MARKS = {
    **dict.fromkeys(("yolo12n:make", "heads:make", "earth:make", "reconcile mfu "), pytest.mark.slow),
    **dict.fromkeys(("llm config.json", "decode --torch torchvision:swin_t", "yolo:make"), pytest.mark.heavy),
    "": pytest.mark.matrix,
}
"""By a part of the command: what needs no environment of its own, what takes half a minute or more, and all others."""


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a folder with the page's files; `llm` where transformers is."""
    shutil.copytree(ROOT / "docs" / "corrections", folder, dirs_exist_ok=True)
    where = python() if command.startswith("reconcile llm ") else sys.executable
    return run_program("-m", "reconcile", *shlex.split(command)[1:], python=where, folder=folder)


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("command", "parts"),
    [
        pytest.param(command, parts, marks=MARKS[next(part for part in MARKS if part in command)])
        for command, parts in REFUSED
    ],
    ids=[shlex.join(shlex.split(command)[1:4]) for command, _ in REFUSED],
)
def test_a_command_prints_what_the_page_shows(command: str, parts: list[str], tmp_path: Path) -> None:
    done = typed(command, tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0 if (command, parts) in SHOWN else 1, False), done.stderr
    assert not_printed(parts, done.stdout) == []


@pytest.mark.frameworks
@pytest.mark.heavy
def test_repvgg_has_its_figure_in_the_fused_form(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "decode.md").read_text().replace("```text\n$ ", "```console\n$ ")
    ((command, parts),) = [(command, parts) for command, parts in consoles(page) if "timm:repvgg_a1" in command]
    done = typed(command, tmp_path)
    assert done.returncode == 1
    assert not_printed(parts, done.stdout) == []
