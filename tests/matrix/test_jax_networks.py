"""Random networks in JAX (tests/networks) in the environment of XLA's counters, against the closed forms of their own blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments.provision import ensure
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
SEED, COUNT = 5000, 40


def test_networks() -> None:
    python = ensure(environments.load()["xla"])
    words = ("-m", "tests.networks", "jax", "--seed", str(SEED), "--count", str(COUNT))
    assert f"{COUNT:,} networks in jax" in output_of(*words, python=python, JAX_PLATFORMS="cpu")
