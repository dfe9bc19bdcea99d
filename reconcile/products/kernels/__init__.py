"""Kernels: what Nsight Compute counted in those of a GPU (--ncu), the log of CPU libraries (--witness), Triton's products."""

from ...core.product import Product

PRODUCT = Product(
    name="kernels",
    module=__name__,
    run_options=(".run_options:KERNELS",),
    framework_fields=(
        ("torch", "launches", (".products.kernels.pytorch.interpreted_kernels",)),
        ("torch", "more_formulas", (".products.kernels.formulas",)),
    ),
)
