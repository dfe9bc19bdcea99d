"""Source of the shortest user program for DeepSpeed's FLOPs profiler; ``reconcile counter reproduce`` fills in the model."""

_CALL = """\
import torch
from deepspeed.profiling.flops_profiler import get_model_profile

{model}
flops, macs, _ = get_model_profile(net, args=[x], print_profile=False, as_string=False)
"""
PROGRAM = {"deepspeed": _CALL + "reported = flops\n", "deepspeed@macs": _CALL + "reported = macs\n"}
TABLE = "deepspeed/profiling/flops_profiler/profiler.py:890"
