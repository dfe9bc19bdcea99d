"""TensorFlow's framework record (package, environments, options); the modules in this folder trace and count its models."""

from ...core.framework import Framework

FRAMEWORK = Framework(
    name="tf",
    title="TensorFlow",
    package="tensorflow",
    adapter=".adapters.tensorflow.adapter",
    formulas=".work.tensorflow",
    model="TensorFlow model",
    help="TensorFlow model: a function that returns it.",
    extra="tf",
    distributions=(
        "tensorflow",
        "tensorflow-cpu",
        "tensorflow-gpu",
        "tf-nightly",
        "tf-nightly-cpu",
        "tensorflow-macos",
    ),
    newest_python=(3, 14),
    around=("keras",),
    # Protobuf 4 refuses generated code of that age, and numpy 2 extension modules; few of these releases say so.
    bounds=(("<2.12", ("protobuf<3.20", "numpy<2")),),
    trains=True,
    optimizers=(
        "sgd",
        "adadelta",
        "adafactor",
        "adagrad",
        "adam",
        "adamax",
        "adamw",
        "ftrl",
        "lamb",
        "lion",
        "muon",
        "nadam",
        "rmsprop",
        "schedulefreeadamw",
    ),
    lends=False,
    backend="tensorflow",
    forks=True,
    functions=(("keras.applications", "keras.applications", ""),),
    order=2,
)
