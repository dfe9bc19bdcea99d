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
