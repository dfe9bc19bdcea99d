"""Source of the shortest user program for fvcore; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch
from fvcore.nn import FlopCountAnalysis

{model}
with torch.no_grad():
    reported = int(FlopCountAnalysis(net, (x,)).unsupported_ops_warnings(False).total())
"""
TABLE = "fvcore/nn/flop_count.py:26"
