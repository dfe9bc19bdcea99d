"""ONNX: its record here, its files and traces in the modules beside it."""

from ...core.framework import Framework

FRAMEWORK = Framework(
    name="onnx",
    title="ONNX",
    package="onnx",
    adapter=".adapters.onnx.adapter",
    formulas=".adapters.onnx.formulas",
    model="ONNX model",
    help="ONNX model: its work, beside that of --torch or --tf.",
    metavar="FILE.onnx",
    extra="onnx",
    files=(("onnx", "an ONNX model"),),
    loader=".adapters.onnx.load",
    factories=False,
    aligned=False,
    exports="torch",
    order=3,
)
