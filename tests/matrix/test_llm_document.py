"""docs/llm.md: every command prints what the page shows, in an environment with transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.matrix.llm_forms import flops, latent
from tests.own.documents import consoles, not_printed
from tests.own.one_process import Commands

ROOT = Path(__file__).parents[2]
CONSOLES = consoles((ROOT / "docs" / "llm.md").read_text())


def configuration() -> dict[str, str]:
    """The file that the page shows, by its name."""
    return {command.removeprefix("cat "): parts[0] for command, parts in CONSOLES if command.startswith("cat ")}


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("command", "parts"), [c for c in CONSOLES if c[0].startswith("reconcile ")], ids=lambda c: str(c)[:40]
)
def test_the_page_shows_what_is_printed(command: str, parts: list[str], llm: Commands, tmp_path: Path) -> None:
    for name, text in configuration().items():
        (tmp_path / name).write_text(text)
    done = llm(*command.split()[1:], folder=tmp_path)
    assert done.returncode == int("formula conform" in command), done.stderr  # the function that it shows is wrong
    assert not_printed(parts, done.stdout) == []


@pytest.mark.parametrize("seq", [4096, 32768, 131072])
def test_the_rows_of_glm52_are_closed_forms(seq: int) -> None:
    """The pull request's figures are held to its formula by tests/adapters/counters/formulas/test_sparse_attention.py."""
    glm = json.loads((ROOT / "tests/matrix/llm/glm-5.2.json").read_text())
    ran, (_, pairs) = flops(glm, "training", seq), latent(glm)
    attention = 6 * glm["num_hidden_layers"] * pairs * seq**2
    sparse = ran - attention + attention * glm["index_topk"] // seq
    (row,) = (line for line in (ROOT / "docs" / "llm.md").read_text().splitlines() if line.startswith(f"| {seq:,} |"))
    assert row.endswith(f"| {ran / seq / 1e9:,.1f} | {sparse / seq / 1e9:,.1f} |")
