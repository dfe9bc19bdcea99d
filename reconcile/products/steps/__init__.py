"""Counts of steps that a user's own program runs: ``reconcile.count`` around its code, ``reconcile watch`` of a script.

It also has what the callbacks of training libraries share (callback.py, training_run.py).
"""

from ...core.product import Command, Product

PRODUCT = Product(
    name="steps",
    module=__name__,
    commands=(
        Command(
            "watch",
            "Run your training script and count the step that it takes.",
            ".command:watch",
            heading="Count a model",
            order=20,
        ),
    ),
    functions=(("count", ".count:count"), ("Step", ".count:Step")),
    uses=("products.llm", "products.mfu"),
)
