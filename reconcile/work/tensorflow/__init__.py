"""Formulas of TensorFlow op types. Shapes are the graph's; inputs include the int tensors (axes, paddings, sizes)."""

from __future__ import annotations

from . import elementwise, gradients, layers, linalg, no_arithmetic, no_products, recurrent  # noqa: F401
