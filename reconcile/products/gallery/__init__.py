"""Every pair of the zoo at its own size, its training steps and its proofs: the runs, the pages."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="gallery",
    module=__name__,
    commands=(
        Command("zoo gallery", "Run every pair of the zoo and write the gallery.", ".command:gallery", order=10),
    ),
    model_notes=(".model_notes:model_notes",),
    needs=("products.decode",),
)
