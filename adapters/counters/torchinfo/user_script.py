"""The counter alone, as its users run it."""

PROGRAM = """\
import torch
import torchinfo

{model}
reported = torchinfo.summary(net, input_data=(x,), verbose=0).total_mult_adds
"""
TABLE = "torchinfo/layer_info.py:225"
