"""A pytest plugin (``-p tests.home.longest_first``, with ``--no-loadscope-reorder``): files that may take longest start first.

Else xdist begins with the files of the most tests, and a file of two tests that take minutes runs alone in the end.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort files by the time that a test of theirs may take, then by their tests; a file's own order stays."""
    sizes = Counter(item.path for item in items)
    allowed: dict[Path, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        allowed[item.path] = max(allowed.get(item.path, 0), float(mark.args[0]) if mark else 0)
    items.sort(key=lambda item: (-allowed[item.path], -sizes[item.path], item.path))
