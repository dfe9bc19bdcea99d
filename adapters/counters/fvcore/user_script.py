"""The counter alone, as its users run it."""

PROGRAM = """\
import torch
from fvcore.nn import FlopCountAnalysis

{model}
with torch.no_grad():
    reported = int(FlopCountAnalysis(net, (x,)).unsupported_ops_warnings(False).total())
"""
TABLE = "fvcore/nn/flop_count.py:26"
