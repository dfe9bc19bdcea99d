"""A sweep starts its workers itself."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _started(started: None) -> None:
    """tests/conftest.py has the workers of other folders forked."""
