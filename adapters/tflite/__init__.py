"""TensorFlow Lite's framework record (package, options); the modules in this folder load and trace its files."""

from ...core.framework import Framework

FRAMEWORK = Framework(
    name="tflite",
    title="TensorFlow Lite",
    package="tensorflow",
    adapter=".adapters.tflite.adapter",
    formulas=".adapters.tflite.formulas",
    model="TensorFlow Lite model",
    help="TensorFlow Lite model.",
    metavar="FILE.tflite",
    extra="tf",
    newest_python=(3, 14),
    files=(("tflite", "a TensorFlow Lite model"),),
    loader=".adapters.tflite.load",
    factories=False,
    aligned=False,
    order=4,
)
