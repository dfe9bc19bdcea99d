"""Source of the shortest user program for pthflops; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch
from pthflops import count_ops

{model}
with torch.no_grad():
    reported, _ = count_ops(net, x, print_readable=False, verbose=False)
"""
TABLE = "pthflops/ops_fx.py:158"
