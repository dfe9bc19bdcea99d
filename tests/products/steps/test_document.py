"""docs/steps.md, typed as it stands: each number that it shows is what a program prints."""

from __future__ import annotations

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


def test_every_view_of_a_step_is_in_the_document() -> None:
    from reconcile.products.steps.count import Step

    text = DOCUMENT.read_text()
    names = [name for name in vars(Step) if not name.startswith("_")]
    inner = {"context", "enter", "leave", "collected", "result"}
    assert [name for name in names if name not in inner and f"`{name}`" not in text and f"`{name}()`" not in text] == []
