"""The counter onnx_tool: the nodes of an ONNX model, by onnx-tool's own table of costs."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="onnx_tool",
        module=__name__,
        framework="onnx",
        unit=MAC,
        package="onnx_tool",
        distribution="onnx-tool",
        versions_key="onnx-tool",
        summary="onnx-tool: Graph.profile of an ONNX model, node by node",
        default=False,
        blind="sees the forward pass only",
        title="onnx-tool",
        requirements=("onnx-tool==1.0.1",),
    ),
)
