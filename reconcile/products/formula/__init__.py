"""``reconcile formula``: exact polynomials of the sizes of a model, by interpolation of the counts of several runs."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="formula",
    module=__name__,
    commands=(
        Command(
            "formula",
            "Find the counts of a model as polynomials of its sizes.",
            ".command:formula",
            heading="Count a model",
            order=50,
        ),
    ),
    functions=(("polynomials", ".api:polynomials"), ("Formula", ".api:Formula")),
)
