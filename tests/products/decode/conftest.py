"""The committed baselines are read once in a process, and so are the candidates that they have."""

from __future__ import annotations

import pytest

from reconcile.drift import baselines
from reconcile.products.decode import search as searching
from tests.products.decode import data


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "load", data.load)
    monkeypatch.setattr(searching, "candidates", data.candidates)
