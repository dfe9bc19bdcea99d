"""Cards: the number of a run in a model card, in a statement of training compute, and in a LaTeX table (docs/cards.md)."""

from ...core.product import Product, RunFormat

PRODUCT = Product(
    name="cards",
    module=__name__,
    run_formats=(
        RunFormat("card", "card.yaml", ".formats:to_card"),
        RunFormat("disclosure", "disclosure.json", ".formats:to_disclosure", ".formats:check_request"),
        RunFormat("tex", "tex", ".formats:to_latex"),
    ),
)
