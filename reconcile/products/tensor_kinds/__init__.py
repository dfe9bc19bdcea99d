"""Operators of PyTorch on sparse, complex and quantised tensors, and oneDNN's on weights in its own layout: the work of each."""

from ...core.product import Product

FORMULAS = ("complex_numbers", "low_precision", "mkldnn", "sparse")
"""The modules of this package that register them."""

PRODUCT = Product(
    name="tensor_kinds",
    module=__name__,
    framework_fields=(("torch", "more_formulas", tuple(f".products.tensor_kinds.{name}" for name in FORMULAS)),),
)
