"""The plugin of ``make matrix``: what is skipped fails the session, what passes does not."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.text

pytest_plugins = ["pytester"]
PASSES = "def test_a():\n    pass\n"
SKIPS = "import pytest\n\ndef test_b():\n    pytest.skip('no interpreter')\n"
EXPECTS = "import pytest\n\n@pytest.mark.xfail\ndef test_c():\n    assert False\n"


@pytest.mark.parametrize(
    ("text", "code", "workers"),
    [
        (PASSES, 0, 0),
        (PASSES + SKIPS, 1, 0),
        (EXPECTS, 1, 0),
        ("", 5, 0),
        pytest.param(PASSES + SKIPS, 1, 1, marks=pytest.mark.slow),
    ],
)
def test_a_skipped_test_fails_the_session(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, text: str, code: int, workers: int
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(text)
    parallel = ("-p", "xdist.plugin", "-n", str(workers)) if workers else ()
    assert pytester.runpytest_inprocess("-p", "no:reconcile", "-p", "tests.home.noskip", *parallel).ret == code
