"""FLOP formulas of language models, published ones and your own, beside what runs: ``reconcile llm``, ``formula conform``."""

from ...core.product import Command, Product

PRODUCT = Product(
    name="llm",
    module=__name__,
    commands=(
        Command(
            "llm",
            "Report a training step beside the published formulas.",
            ".command:llm",
            heading="Count a model",
            order=60,
        ),
        Command(
            "formula conform",
            "Hold your own FLOP formulas to what runs of many configurations.",
            ".conform_command:conform",
            heading="Count a model",
            order=55,
        ),
    ),
    functions=(("llm", ".api:llm"), ("LanguageModel", ".api:LanguageModel")),
    fixture_functions=(("formula", ".fixture:hold_formula"),),
    needs=("counters.formulas", "products.formula"),
)
