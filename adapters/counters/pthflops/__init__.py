"""The counter pthflops, its count_ops of a torch.fx graph. It calls its unit FLOPs; a product counts its multiply-adds."""

from ....core.records import MAC
from .. import torch_counter

COUNTERS = (
    torch_counter(
        "pthflops",
        __name__,
        MAC,
        "pthflops' count_ops: the nodes of a torch.fx graph",
        title="pthflops.count_ops",
        requirements=("pthflops==0.4.2",),
        checked=("0.4.2", "0.4.2"),
    ),
)
