"""The counter onnx_opcounter, calculate_macs of an ONNX model: node by node; an unknown operator counts its output."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="onnx_opcounter",
        module=__name__,
        framework="onnx",
        unit=MAC,
        package="onnx_opcounter",
        distribution="onnx-opcounter",
        versions_key="onnx-opcounter",
        summary="onnx-opcounter: calculate_macs of an ONNX model, and one for each output of operators that it does not know",
        default=False,
        blind="sees the forward pass only",
        title="onnx-opcounter",
        requirements=("onnx-opcounter==0.0.4", "onnxruntime==1.32.0"),
        checked=("0.0.4", "0.0.4"),
    ),
)
