"""Source of the shortest user program for calflops; ``reconcile counter reproduce`` fills in the model."""

_CALL = """\
import torch
from calflops import calculate_flops

{model}
flops, macs, _ = calculate_flops(net, args=[x], print_results=False, output_as_string=False)
"""
PROGRAM = {"calflops": _CALL + "reported = flops\n", "calflops@macs": _CALL + "reported = macs\n"}
TABLE = "calflops/pytorch_ops.py:452"
PLACES = {"recounted": "calflops/utils.py:253 (added up for each parent)"}
