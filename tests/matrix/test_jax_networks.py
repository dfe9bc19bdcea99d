"""Random networks in JAX (tests/networks) in the environment of XLA's counters, against the closed forms of their own blocks."""

from __future__ import annotations

import pytest

from tests.matrix.reports import python_of
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

SEED, COUNT = 5000, 40


def test_networks() -> None:
    words = ("-m", "tests.networks", "jax", "--seed", str(SEED), "--count", str(COUNT))
    assert f"{COUNT:,} networks in jax" in output_of(*words, python=python_of("xla"), JAX_PLATFORMS="cpu")
