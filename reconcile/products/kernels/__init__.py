"""GPU kernels: the products that Nsight Compute counted in them, compared with the trace (docs/kernels.md)."""

from ...core.product import Product

PRODUCT = Product(name="kernels", module=__name__, run_options=(".run_options:KERNELS",))
