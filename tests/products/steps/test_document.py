"""docs/steps.md, typed as it stands, and its numbers by closed form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.own.test_documents import ROOT, typed

DOCUMENT = ROOT / "docs" / "steps.md"


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_step_does_what_its_document_says(tmp_path: Path) -> None:
    done = typed(DOCUMENT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith(" examples, 0 failed")


def test_its_numbers_are_closed_forms() -> None:
    """Two micro-batches of 4 rows through 64-32-10; then 24 tokens through two layers of width 16 with 40 words."""
    text = DOCUMENT.read_text()
    first, second = 2 * 2 * 4 * 64 * 32, 2 * 2 * 4 * 32 * 10
    assert f"{2 * first + 3 * second:,} FLOPs" in text
    assert f"'flops/input-gradient': {second}," in text
    matrices, pairs = 24 * (2 * 12 * 16 * 16 + 16 * 40), 2 * 12 * 12 * 16
    shown = dict(re.findall(r"^ *([a-z-]+|what ran)  +([+-]?[\d,]+)$", text, re.MULTILINE))
    assert shown["what ran"] == f"{6 * matrices + 2 * 2 * 6 * pairs:,}"
    assert shown["lookup-as-product"] == f"{-6 * 24 * 40 * 16:,}"
    assert shown["residual"] == "0"


def test_every_view_of_a_step_is_in_the_document() -> None:
    from reconcile.products.steps.count import Step

    text = DOCUMENT.read_text()
    names = [name for name in vars(Step) if not name.startswith("_")]
    inner = {"context", "enter", "leave", "collected", "result"}
    assert [name for name in names if name not in inner and f"`{name}`" not in text and f"`{name}()`" not in text] == []
