"""The limits of a cell in the sweep of a library that runs in this process's children."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from reconcile.products.sweep import cells
from tests.products.sweep import coverage

pytestmark = pytest.mark.frameworks


def test_a_cell_ends_in_time_though_its_search_catches_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that goes on after each error of a model would run for a minute; the cell may take a moment."""
    tried: list[Exception] = []
    swallowed: list[BaseException] = []

    def search(*_: object) -> Any:
        until = time.monotonic() + 500
        while time.monotonic() < until:
            try:
                time.sleep(500)
            except Exception as error:  # as a search for inputs does
                tried.append(error)
            except BaseException as error:  # as a library does while it imports a module
                if swallowed:
                    raise
                swallowed.append(error)
        raise AssertionError("the time limit did not end it")

    monkeypatch.setattr(coverage, "collect_live", search)
    monkeypatch.setattr(coverage, "LONGEST", 0.5)
    monkeypatch.setattr(coverage, "AGAIN", 0.1)
    cell = cells.Cell("slow", factories={"torch": "torch.nn:Linear"})
    request = cells.request_of(cell, cells.manner_of({}, ()), ())
    before = signal.getsignal(signal.SIGALRM)
    answer = json.loads(coverage.here(json.dumps(request)))
    assert answer["outcome"]["refused"] == {"": "it takes longer than 0.5 s."}
    assert (tried, len(swallowed)) == ([], 1)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
