"""The counter onnx_tool: the nodes of an ONNX model, by onnx-tool's own table of costs."""

from ....core.records import MAC
from .. import package_counter

COUNTERS = (
    package_counter(
        "onnx_tool",
        __name__,
        MAC,
        "onnx-tool: Graph.profile of an ONNX model, node by node",
        framework="onnx",
        distribution="onnx-tool",
        versions_key="onnx-tool",
        title="onnx-tool",
        requirements=("onnx-tool==1.0.1",),
    ),
)
