"""The counter torch_flops: the nodes of a torch.fx graph, products as 2K - 1 and their biases, and some elementwise work."""

from ....core.records import FLOP
from .. import torch_counter

COUNTERS = (
    torch_counter(
        "torch_flops",
        __name__,
        FLOP,
        "torch_flops' TorchFLOPsByFX: the nodes of a torch.fx graph",
        title="torch_flops.TorchFLOPsByFX",
        requirements=("torch_flops==0.4.1", "tabulate==0.9.0"),
        checked=("0.4.1", "0.4.1"),
    ),
)
