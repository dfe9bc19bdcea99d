"""Files that may take longest start first, and the tests of a file stay in their order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "one": "def test_a(): pass\n",
    "two": "def test_b(): pass\ndef test_a(): pass\n",
    "long": "import pytest\n@pytest.mark.timeout(900)\ndef test_a(): pass\n",
    "longest": "import pytest\ndef test_b(): pass\n@pytest.mark.timeout(3600)\ndef test_a(): pass\n",
}


def test_files_by_what_they_may_take(tmp_path: Path) -> None:
    for name, text in TESTS.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:reconcile",
        "-p",
        "tests.home.longest_first",
        "--collect-only",
        "-q",
    ]
    done = subprocess.run([*command, f"--rootdir={tmp_path}", "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
                          cwd=ROOT, capture_output=True, text=True)  # fmt: skip
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert found == [
        "test_longest.py::test_b",
        "test_longest.py::test_a",
        "test_long.py::test_a",
        "test_two.py::test_b",
        "test_two.py::test_a",
        "test_one.py::test_a",
    ]
