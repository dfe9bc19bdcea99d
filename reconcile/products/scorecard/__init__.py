"""``reconcile zoo scorecard``: tests every counter on every layer of the zoo's families, and writes the verdicts."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="scorecard",
    module=__name__,
    commands=(
        Command(
            "zoo scorecard",
            "Test every counter on every layer of the zoo's families.",
            ".command:scorecard",
            order=20,
        ),
    ),
    needs=("products.authors", "products.gallery"),
)
