"""Formulas of ATen operators ("aten.<name>", overload and in-place underscore dropped), and of those of other namespaces that
PyTorch or a kernel library runs beside them (prims, higher_order, bitsandbytes, tl).

There are two levels: the operators that a dispatch mode sees (convolution, addmm, native_layer_norm), and the composites that
jit traces and function modes show (conv2d, linear, layer_norm, gru). Both use the same pure functions.
Shapes are torch's: inputs in schema order, without tensors that were not given; every other argument is in attrs.
"""

from __future__ import annotations

from .. import attention_kernels  # noqa: F401
from . import (  # noqa: F401
    distances,
    elementwise,
    foreach,
    fused_gradients,
    gradients,
    layers,
    linalg,
    losses,
    no_arithmetic,
    no_products,
    ordering,
    pointwise,
    products,
    recurrent,
    reductions,
    sampling,
)
