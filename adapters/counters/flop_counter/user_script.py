"""The counter alone, as its users run it."""

PROGRAM = """\
import torch
from torch.utils.flop_counter import FlopCounterMode

{model}
with torch.no_grad(), FlopCounterMode(display=False) as counter:
    net(x)
reported = counter.get_total_flops()
"""
TABLE = "torch/utils/flop_counter.py (flop_registry)"
