"""``reconcile mfu``: explains a published model FLOPs utilisation (MFU) as a product of factors."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="mfu",
    module=__name__,
    commands=(
        Command(
            "mfu",
            "Explain a published MFU as a product of factors.",
            ".command:mfu",
            heading="A number that you were given",
            order=30,
        ),
    ),
    needs=("products.llm",),
)
