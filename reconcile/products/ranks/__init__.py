"""Distributed training (``reconcile run --ranks``, ``reconcile ranks``): the work of each rank, and the sum beside one device."""

from ...core.product import Command, Product

LARGEST_WORLD = 1 << 20
"""The most ranks of a world."""

PRODUCT = Product(
    name="ranks",
    module=__name__,
    commands=(
        Command(
            "ranks",
            "Add up the reports of several processes on one step.",
            ".command:ranks",
            heading="Count a model",
            order=30,
        ),
    ),
    framework_fields=(
        ("torch", "ranks", ".products.ranks.pytorch.rank"),
        ("torch", "more_formulas", (".products.ranks.collectives",)),
    ),
    run_options=(".run_options:RANKS",),
    needs=("products.steps",),
)
