"""Source of the shortest user program for torch_flops; ``reconcile counter reproduce`` fills in the model.

Without a GPU it calls the other of its two functions of memory.
"""

PROGRAM = """\
import torch
from torch_flops import TorchFLOPsByFX

{model}
counter = TorchFLOPsByFX(net, mem_func_name="memory_allocated")
with torch.no_grad():
    counter.propagate(x)
reported = counter.print_total_flops(show=False)
"""
TABLE = "torch_flops/flops_ops.py:393"
