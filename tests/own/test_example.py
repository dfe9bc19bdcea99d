"""docs/example.ipynb shows what it shows today; ``python -m tests.own.notebook docs/example.ipynb`` writes it anew."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example.ipynb"


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_notebook_shows_what_it_shows_today(tmp_path: Path) -> None:
    copy = Path(shutil.copy(EXAMPLE, tmp_path))
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "tests.own.notebook", str(copy)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    fresh, held = (json.loads(path.read_text(encoding="utf-8"))["cells"] for path in (copy, EXAMPLE))
    for now, before in zip(fresh, held, strict=True):
        assert now == before, "stale: python -m tests.own.notebook docs/example.ipynb"
