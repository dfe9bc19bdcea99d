"""The independent count of a sweep's models: each in a child that ends in time, and compared with what the sweep found."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import torch

from tests.products.sweep import coverage
from tests.products.sweep.small_models.library import LAYERS, TOKENS, WIDTH, Net, Whole, load

pytestmark = pytest.mark.frameworks
WORK = 2 * LAYERS * TOKENS * WIDTH**2


def test_a_model_that_goes_on_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "LONGEST", 1)

    def go_on(_argument: str) -> str:
        while True:
            try:
                torch.ones(2).sum()
            except BaseException:  # as a library does while it imports a module
                continue

    assert "signal 14" in coverage.in_child(go_on, "")


@pytest.mark.parametrize(("work", "exit_code"), [(WORK, 0), (WORK + 2, 1)])
def test_the_two_counts_of_a_model_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: int, exit_code: int
) -> None:
    library = types.ModuleType("transformers")
    vars(library).update({"Net": Net, "Whole": Whole})
    monkeypatch.setitem(sys.modules, "transformers", library)
    monkeypatch.setattr(Net, "__module__", "transformers.models.stub")
    monkeypatch.setattr("reconcile.products.sweep.small_models.table.load", load)
    rows = f"transformers.Net,torch,trace,{work}\ntransformers.Gone,torch,trace,\n"
    (tmp_path / "sweep.csv").write_text(f"model,framework,counter,work\n{rows}")
    assert coverage.main("transformers", tmp_path) == exit_code
    assert (tmp_path / "independent.csv").read_text().splitlines()[1:] == [f"transformers.Net,{work},{WORK}"]
