"""``reconcile upgrade``: counts under two releases of a package, compared layer by layer before you upgrade."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="upgrade",
    module=__name__,
    commands=(
        Command(
            "upgrade",
            "Compare two releases layer by layer, before you upgrade.",
            ".command:upgrade",
            heading="Releases",
            order=20,
        ),
    ),
    needs=("products.authors", "products.scorecard"),
)
