"""``reconcile decode``: explains a published number of a model by a closed list of readings (docs/decode.md)."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="decode",
    module=__name__,
    commands=(
        Command(
            "decode",
            "Explain a published number of a model.",
            ".command:decode",
            heading="A number that you were given",
            order=10,
        ),
    ),
    answer_hooks=(".published_figures:add_published_figures",),
    uses=("products.gallery",),
)
