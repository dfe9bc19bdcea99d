"""Source of the shortest user program for FlopCounterMode; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch
from torch.utils.flop_counter import FlopCounterMode

{model}
with torch.no_grad(), FlopCounterMode(display=False) as counter:
    net(x)
reported = counter.get_total_flops()
"""
TABLE = "torch/utils/flop_counter.py (flop_registry)"
