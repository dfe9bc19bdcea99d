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


def test_its_numbers_are_closed_forms() -> None:
    """The network of docs/api.md. Under `all` also biases, the ReLU and the gates: 30 steps of 64 units, each with the six
    biases of its three gates, 5 additions, 2 products and 3 of sigmoid and tanh (reset gate before, h' = n + z * (h - n))."""
    text = EXAMPLE.read_text(encoding="utf-8")
    macs = 8 * 30 * 30 * 9 + 30 * 3 * 64 * (240 + 64) + 64 * 10
    rest = 2 * 8 * 30 * 30 + 10 + 30 * 64 * (6 + 5 + 2 + 3)
    assert f"{2 * macs:,} FLOPs" in text
    assert f"{2 * macs + rest:,} FLOPs" in text
