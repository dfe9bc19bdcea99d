"""A pytest plugin (``-p tests.home.noskip``): a session in which anything was skipped has failed."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Turn success into failure where a test was skipped or expected to fail."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    idle = reporter is not None and (reporter.stats.get("skipped") or reporter.stats.get("xfailed"))
    if idle and exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{len(idle)} tests were left out; nothing may be", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
