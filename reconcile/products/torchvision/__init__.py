"""torchvision's operators: the work of each, and their schemas where its compiled library cannot be loaded."""

from ...core.product import Product

PRODUCT = Product(
    name="torchvision",
    module=__name__,
    framework_fields=(
        ("torch", "more_formulas", (".products.torchvision.formulas",)),
        ("torch", "declared_by", (".products.torchvision.pytorch.operators",)),
    ),
)
