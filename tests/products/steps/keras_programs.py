"""Programs that call ``fit`` of Keras in a process of their own, and what a batch of their network runs by closed form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.programs import output_of

A, B, C = 8, 16, 4
"""Inputs, hidden values and results."""


def run_program(program: str, backend: str, folder: Path) -> Any:
    """What the program prints last, as JSON."""
    return json.loads(output_of("-c", program, folder=folder, KERAS_BACKEND=backend).splitlines()[-1])


def batch(n: int) -> int:
    """FLOPs of n rows: products forward, as many for the weights' gradients, and the hidden values' gradient."""
    return 2 * n * (2 * (A * B + B * C) + B * C)
