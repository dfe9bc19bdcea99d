"""What the kernels of a GPU multiplied, as Nsight Compute counted it, beside the work that ran (docs/kernels.md)."""

from ...core.product import Product

PRODUCT = Product(name="kernels", module=__name__, run_options=(".run_options:KERNELS",))
