"""Source of the shortest user program for onnx-tool; ``reconcile counter reproduce`` fills in the model.

It counts what PyTorch exports.
"""

PROGRAM = """\
import io

import onnx
import onnx_tool
import torch

{model}
data = io.BytesIO()
torch.onnx.export(net, (x,), data, dynamo=False)
graph = onnx_tool.Model(onnx.load_model_from_string(data.getvalue())).graph
graph.graph_reorder_nodes()
graph.shape_infer(None)
graph.profile()
reported = round(graph.macs[0])
"""
TABLE = "onnx_tool/node.py"
