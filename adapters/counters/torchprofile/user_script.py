"""The counter alone, as its users run it."""

PROGRAM = """\
import torch
from torchprofile import profile_macs

{model}
with torch.no_grad():
    reported = profile_macs(net, (x,))
"""
TABLE = "torchprofile/handlers.py:180"
