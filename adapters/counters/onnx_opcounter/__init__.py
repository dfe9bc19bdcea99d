"""The counter onnx_opcounter, calculate_macs of an ONNX model: node by node; an unknown operator counts its output."""

from ....core.records import MAC
from .. import package_counter

COUNTERS = (
    package_counter(
        "onnx_opcounter",
        __name__,
        MAC,
        "onnx-opcounter: calculate_macs of an ONNX model, and one for each output of operators that it does not know",
        framework="onnx",
        distribution="onnx-opcounter",
        versions_key="onnx-opcounter",
        title="onnx-opcounter",
        requirements=("onnx-opcounter==0.0.4", "onnxruntime==1.32.0"),
        checked=("0.0.4", "0.1.0"),
    ),
)
