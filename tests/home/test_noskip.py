"""The plugin of ``make matrix``: what is skipped fails the session, what passes does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSES = "def test_a():\n    pass\n"
SKIPS = "import pytest\n\ndef test_b():\n    pytest.skip('no interpreter')\n"
EXPECTS = "import pytest\n\n@pytest.mark.xfail\ndef test_c():\n    assert False\n"


@pytest.mark.parametrize(
    ("text", "code", "workers"),
    [(PASSES, 0, 0), (PASSES + SKIPS, 1, 0), (EXPECTS, 1, 0), ("", 5, 0), (PASSES + SKIPS, 1, 1)],
)
def test_a_skipped_test_fails_the_session(tmp_path: Path, text: str, code: int, workers: int) -> None:
    (tmp_path / "test_it.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:reconcile", "-p", "tests.home.noskip", "-n", str(workers)]
    done = subprocess.run([*command, f"--rootdir={tmp_path}", "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
                          cwd=ROOT, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr


def test_ci_calls_the_target() -> None:
    assert {"make test", "make home-matrix", 'make proofs KINDS="matrix or browser"'} <= {
        *(ROOT / ".ci/run").read_text().splitlines()
    }
    makefile = (ROOT / "Makefile").read_text()
    assert "\nKINDS ?= slow or matrix or browser\n" in makefile
    rule = makefile.partition("\nproofs: ")[2].partition("\n\n")[0]
    assert '-m "($(KINDS)) and not heavy" -p tests.home.noskip' in rule
