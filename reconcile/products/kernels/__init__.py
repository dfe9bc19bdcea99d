"""Witnesses of the trace: what Nsight Compute counted in GPU kernels (--ncu), and the log of CPU libraries (--witness)."""

from ...core.product import Product

PRODUCT = Product(name="kernels", module=__name__, run_options=(".run_options:KERNELS",))
