"""Source of the shortest user program for inductor's flop counter; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import torch
from torch._functorch.aot_autograd import make_boxed_func
from torch._inductor.compile_fx import compile_fx
from torch._inductor.fx_utils import count_flops_fx

{model}
counts = []


def inner(graph, inputs, **settings):
    counts.extend(count_flops_fx(node) or 0 for node in graph.graph.nodes)
    return make_boxed_func(graph.forward)


torch.compiler.reset()
with torch.no_grad():
    torch.compile(net, backend=lambda graph, inputs: compile_fx(graph, inputs, inner_compile=inner))(x)
reported = sum(counts)
"""
TABLE = "torch/_inductor/fx_utils.py:755"
