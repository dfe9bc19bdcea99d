"""docs/llm.md: every command prints what the page shows, in an environment with transformers."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert done.returncode == 0, done.stderr
    assert not_printed(parts, done.stdout) == []


H, KEYS, F, V, L, T, R = 64, 32, 192, 1000, 2, 512, 8
PROJECTIONS = 2 * H * H + 2 * H * KEYS
WEIGHTS = L * (PROJECTIONS + 3 * H * F) + H * V
PAIRS = L * 2 * H
"""Of both products of attention, for one token and one key, in all layers."""
ADAPTERS = L * R * (2 * 2 * H + 2 * (H + KEYS) + 3 * (H + F))
FIRST = H * (H + 2 * KEYS)
NORMS = (2 * L + 1) * H


def test_its_numbers_are_closed_forms() -> None:
    text = " ".join((ROOT / "docs" / "llm.md").read_text().split())
    whole, packed = 6 * (WEIGHTS + PAIRS * T), 6 * (WEIGHTS + PAIRS * T // 4)
    adapted = 2 * (2 * WEIGHTS - FIRST + 3 * ADAPTERS - 3 * R * H + 3 * PAIRS * T)
    assert [f"what ran {flops:,} 1 " in text for flops in (whole, packed, adapted)] == [True] * 3
    assert f"MFU: {whole:,} FLOPs per token ({T * whole:,} per step)" in text
    assert f"nanochat {whole:,} {whole / packed:.4f} attention-across-documents" in text
    assert f"trains {ADAPTERS:,} of {WEIGHTS + H * V + NORMS + ADAPTERS:,} parameters" in text
    assert f"-{2 * T * (WEIGHTS + FIRST):,} frozen-not-discounted" in text
    assert f"+{2 * T * (3 * ADAPTERS - 3 * R * H):,} op-not-counted" in text
    assert f"+{6 * PAIRS * T * T:,} attention-left-out" in text
