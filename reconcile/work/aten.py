"""Formulas of ATen operators ("aten.<name>", overload and in-place underscore dropped).

There are two levels: the operators that a dispatch mode sees (convolution, addmm, native_layer_norm), and the composites that
jit traces and function modes show (conv2d, linear, layer_norm, gru). Both use the same pure functions.
Shapes are torch's: inputs in schema order, without tensors that were not given; every other argument is in attrs.
"""

from __future__ import annotations

from . import (  # noqa: F401
    aten_complex,
    aten_distances,
    aten_elementwise,
    aten_foreach,
    aten_fused_gradients,
    aten_gradients,
    aten_layers,
    aten_linalg,
    aten_losses,
    aten_lowprecision,
    aten_moves,
    aten_ordering,
    aten_partly,
    aten_pointwise,
    aten_products,
    aten_recurrent,
    aten_reductions,
    aten_sampling,
    aten_sparse,
    collectives,
    torchvision,
)
