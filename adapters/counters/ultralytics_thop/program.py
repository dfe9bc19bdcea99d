"""The counter alone, as its users run it. get_flops makes its input itself, so no program that is given one shows it."""

PROGRAM = {
    "ultralytics-thop": """\
import thop
import torch

{model}
macs, _ = thop.profile(net, (x,), verbose=False)
reported = int(macs)
"""
}
TABLE = "thop/profile.py:42"
