"""Formulas of TensorFlow op types. Shapes are the graph's; inputs include the int tensors (axes, paddings, sizes)."""

from __future__ import annotations

from . import tf_elementwise, tf_gradients, tf_layers, tf_linalg, tf_moves, tf_partly, tf_recurrent  # noqa: F401
