"""Random networks in JAX (tests/networks) in the environment of XLA's counters, against the closed forms of their own blocks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reconcile.launch.environments import named as environments
from reconcile.launch.environments.provision import ensure

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
SEED, COUNT = 5000, 40


def test_networks() -> None:
    python = ensure(environments.load()["xla"])
    done = subprocess.run(
        [python, "-m", "tests.networks", "jax", "--seed", str(SEED), "--count", str(COUNT)],
        cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert f"{COUNT:,} networks in jax" in done.stdout
