"""Inputs that something was wrong with once: nothing is wrong with them now."""

from __future__ import annotations

import pytest

from tests.programs import output_of

from . import targets
from .harness import SEEDS

KNOWN = targets.load()
KEPT = sorted(SEEDS.iterdir())


def replayed(needs: str) -> None:
    """All kept inputs of the targets that need this framework, in one process."""
    files = [str(path) for path in KEPT if KNOWN[path.name.partition("-")[0]].needs == needs]
    assert files
    printed = output_of("-m", "tests.fuzz", "--replay", *files)
    assert printed.splitlines() == [f"{name}: nothing is wrong" for name in files]


def test_every_seed_has_a_target() -> None:
    assert {path.name.partition("-")[0] for path in KEPT} <= set(KNOWN)


def test_what_needs_no_framework() -> None:
    replayed("")


@pytest.mark.frameworks
@pytest.mark.slow
def test_what_needs_onnx() -> None:
    replayed("onnx")
