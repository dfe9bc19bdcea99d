"""Source of the shortest user program for torchstat; ``reconcile counter reproduce`` fills in the model.

``stat`` itself prints its table by a function that pandas 2 no longer has.

The hook runs one random image. A call after it takes the place of that one in the numbers of each module.
"""

_PROGRAM = """\
import torch
from torchstat import ModelHook

{model}
hook = ModelHook(net, x.shape[1:])
net(x)
reported = sum(int(module.NUMBER) for module in hook.retrieve_leaf_modules().values())
"""
PROGRAM = {
    "torchstat": _PROGRAM.replace("NUMBER", "Flops"),
    "torchstat@madd": _PROGRAM.replace("NUMBER", "MAdd"),
}
TABLE = "torchstat/compute_flops.py:6, torchstat/compute_madd.py:140"
