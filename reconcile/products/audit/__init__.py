"""``reconcile audit``: explains each published number in a table of claims, or says why it has no explanation.

``claims`` reads the table, ``claim_cells`` makes a cell of a sweep for each model that it names, ``cell`` reads one model's trace
in a process of its own, ``verdict`` looks the numbers up in it, ``report`` shows them all, ``published_tables`` makes tables of
what libraries publish.
"""

from ...core.product import Command, Product

PRODUCT = Product(
    name="audit",
    module=__name__,
    commands=(
        Command(
            "audit",
            "Explain what each published figure in a table counts.",
            ".command:audit",
            heading="A number that you were given",
            order=20,
        ),
    ),
    needs=("products.decode", "products.gallery", "products.sweep"),
)
