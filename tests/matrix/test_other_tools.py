"""The figures of tools that count other frameworks, in docs/decode.md: closed forms, and what the page shows is printed."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.own.documents import commands, consoles, not_printed
from tests.programs import output_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/decode.md").read_text()
TITLE = "A figure of a tool that counts another framework"
SECTION = PAGE.partition(f"## {TITLE}\n")[2].partition("\n## ")[0]
TYPED = commands(SECTION)
SHOWN = dict(consoles(SECTION))


def lenet() -> tuple[int, int]:
    """paddle.flops of the first convolution, and of all: a bias counts in convolutions, and not in linear layers."""
    first = 6 * 28 * 28 * (3 * 3 + 1)
    return first, first + 16 * 10 * 10 * (6 * 5 * 5 + 1) + 400 * 120 + 120 * 84 + 84 * 10


def readme() -> tuple[int, int, int]:
    """flopscope's program: the figure in print in 0.4, what 0.4 counts, and what 0.12 counts, which takes 2 for float64."""
    depth, width = 5, 256
    drawn, others = 16 * (depth * width**2 + width), depth * width**2 + (depth - 1) * width + 1
    products, rows = depth * width**2, depth * width
    own = drawn + others + 2 * products - rows
    return drawn + others + 2 * products, own, 2 * own


def test_the_page_has_the_figures_and_their_parts() -> None:
    named = [int(word) for command in TYPED for word in shlex.split(command) if word.isdigit()]
    printed, own, twice = readme()
    assert named == [*lenet(), printed, twice]
    assert f"{own:,}" in SECTION
    assert len(SHOWN) == 1


@pytest.mark.frameworks
@pytest.mark.matrix
@pytest.mark.parametrize("command", TYPED, ids=[next(w for w in shlex.split(c) if w.isdigit()) for c in TYPED])
def test_a_command_explains_the_figure(command: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs/decode", tmp_path, dirs_exist_ok=True)
    printed = output_of("-m", "reconcile", *shlex.split(command)[1:], folder=tmp_path)
    assert not_printed(SHOWN.get(command, ["is explained"]), printed) == []
