"""Source of the shortest user program for torchinfo; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch
import torchinfo

{model}
reported = torchinfo.summary(net, input_data=(x,), verbose=0).total_mult_adds
"""
TABLE = "torchinfo/layer_info.py:225"
