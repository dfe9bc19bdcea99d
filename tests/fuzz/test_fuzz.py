"""``make fuzz``: every target for its share of the minutes. What is found is kept under found/, with what replays it."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import pytest

from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure

from . import targets
from .harness import FOUND
from .running import run

pytestmark = pytest.mark.heavy

KNOWN = targets.load()
NAMES = sorted(KNOWN)
MINUTES = float(os.environ.get("FUZZ_MINUTES") or 10)
SEED = os.environ.get("FUZZ_SEED")


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wrong(name: str, tmp_path: Path) -> None:
    seed = int(SEED) if SEED else secrets.randbelow(2**32)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    # JAX is where XLA's counters are: in an environment of theirs over this one's packages.
    python = ensure(load()["xla"]) if KNOWN[name].needs == "jax" else sys.executable
    ended = run(name, seed, 60 * MINUTES * workers / len(NAMES), tmp_path, FOUND, python=python)
    print(f"{name}: {ended.inputs:,} inputs, seed {seed}")
    assert not ended.findings, "\n\n".join(ended.findings)
    assert ended.inputs > 0
