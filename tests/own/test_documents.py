"""docs/api.md, typed as it stands, in a folder and a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "api.md"


def typed(document: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.own.documents import main; main({str(document)!r})"
    )
    words = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_interface_does_what_its_document_says(tmp_path: Path) -> None:
    done = typed(DOCUMENT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith(" examples, 0 failed")
