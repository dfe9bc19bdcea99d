"""Source of the shortest user program for torchscan; ``reconcile counter reproduce`` fills in the model."""

_PROGRAM = """\
import torch
from torchscan import crawl_module

{model}
reported = crawl_module(net, args=(x,))["totals"]["NUMBER"]["known_value"]
"""
PROGRAM = {
    "torchscan": _PROGRAM.replace("NUMBER", "module_flops"),
    "torchscan@macs": _PROGRAM.replace("NUMBER", "macs"),
}
TABLE = "torchscan/modules/flops.py:22, torchscan/modules/macs.py:21"
