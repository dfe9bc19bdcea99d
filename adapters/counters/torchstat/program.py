"""The counter alone, as its users run it; ``stat`` itself prints its table by a function that pandas 2 no longer has."""

_PROGRAM = """\
import torch
from torchstat import ModelHook

{model}
hook = ModelHook(net, x.shape[1:])
reported = sum(int(module.NUMBER) for module in hook.retrieve_leaf_modules().values())
"""
PROGRAM = {
    "torchstat": _PROGRAM.replace("NUMBER", "Flops"),
    "torchstat@madd": _PROGRAM.replace("NUMBER", "MAdd"),
}
TABLE = "torchstat/compute_flops.py:6, torchstat/compute_madd.py:140"
