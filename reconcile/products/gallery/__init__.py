"""``reconcile zoo gallery``: runs every pair of the zoo at its own size, and writes the pages of the gallery.

What it measured of a pair also stands in ``reconcile explain models``.
"""

from ...core.product import Command, Product

PRODUCT = Product(
    name="gallery",
    module=__name__,
    commands=(
        Command("zoo gallery", "Run every pair of the zoo and write the gallery.", ".command:gallery", order=10),
    ),
    model_notes=(".report:model_notes",),
    needs=("products.decode",),
)
