"""Formulas of TensorFlow op types. Shapes are the graph's; inputs include the int tensors (axes, paddings, sizes)."""

from __future__ import annotations

from . import elementwise, gradients, layers, linalg, moves, partly, recurrent  # noqa: F401
