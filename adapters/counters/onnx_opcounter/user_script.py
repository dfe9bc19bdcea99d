"""Source of the shortest user program for onnx-opcounter; ``reconcile counter reproduce`` fills in the model.

It counts what PyTorch exports.
"""

PROGRAM = """\
import io

import onnx
import torch
from onnx_opcounter import calculate_macs

{model}
data = io.BytesIO()
torch.onnx.export(net, (x,), data, dynamo=False)
reported = int(calculate_macs(onnx.load_model_from_string(data.getvalue())))
"""
TABLE = "onnx_opcounter/onnx_opcounter.py:155"
