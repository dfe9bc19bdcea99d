"""Source of the shortest user program for torchprofile; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch
from torchprofile import profile_macs

{model}
with torch.no_grad():
    reported = profile_macs(net, (x,))
"""
TABLE = "torchprofile/handlers.py:180"
