"""Programs that call ``fit`` of Keras in a process of their own, and what a batch of their network runs by closed form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

A, B, C = 8, 16, 4
"""Inputs, hidden values and results."""


def run_program(program: str, backend: str, folder: Path) -> Any:
    """What the program prints last, as JSON."""
    environ = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def batch(n: int) -> int:
    """FLOPs of n rows: products forward, as many for the weights' gradients, and the hidden values' gradient."""
    return 2 * n * (2 * (A * B + B * C) + B * C)
