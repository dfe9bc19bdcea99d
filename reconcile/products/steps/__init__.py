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
    framework_fields=(
        ("torch", "steps", ".products.steps.pytorch"),
        ("torch", "watched", ("torch", "PyTorch", ".products.steps.pytorch.watch")),
        (
            "tf",
            "watched",
            ("keras.src.backend.tensorflow.trainer", "Keras 3 on TensorFlow", ".products.steps.tensorflow.fit"),
        ),
        ("tf", "fits", ".products.steps.tensorflow.fit"),
    ),
    counter_fields=(("flop_counter", "nested", ".products.steps.pytorch.flop_counter"),),
    uses=("products.llm", "products.mfu"),
)
