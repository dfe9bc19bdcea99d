"""Files that may take longest start first, and the tests of a file stay in their order."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.text

pytest_plugins = ["pytester"]
TESTS = {
    "test_one": "def test_a(): pass\n",
    "test_two": "def test_b(): pass\ndef test_a(): pass\n",
    "test_long": "import pytest\n@pytest.mark.timeout(900)\ndef test_a(): pass\n",
    "test_longest": "import pytest\ndef test_b(): pass\n@pytest.mark.timeout(3600)\ndef test_a(): pass\n",
}


def test_files_by_what_they_may_take(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(**TESTS)
    words = ("-p", "tests.home.longest_first", "-p", "pytest_timeout", "--collect-only", "-q")
    assert [line for line in pytester.runpytest_inprocess(*words).outlines if "::" in line] == [
        "test_longest.py::test_b",
        "test_longest.py::test_a",
        "test_long.py::test_a",
        "test_two.py::test_b",
        "test_two.py::test_a",
        "test_one.py::test_a",
    ]
