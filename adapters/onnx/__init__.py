"""ONNX's framework record (package, options); the modules in this folder load, check and trace its files."""

from ...core.framework import Framework

FRAMEWORK = Framework(
    name="onnx",
    title="ONNX",
    package="onnx",
    adapter=".adapters.onnx.adapter",
    formulas=".adapters.onnx.formulas",
    model="ONNX model",
    help="ONNX model.",
    metavar="FILE.onnx",
    extra="onnx",
    files=(("onnx", "an ONNX model"),),
    loader=".adapters.onnx.load",
    factories=False,
    aligned=False,
    exports="torch",
    order=3,
)
