"""The counters torchscan and torchscan@macs, FLOPs and multiply-adds of its crawl_module: hooks on leaf modules."""

from ....core.records import FLOP, MAC
from .. import torch_counter

NUMBER, MACS = "number", "macs"
"""The attribute that says which of both numbers a call is of, and its value for multiply-adds."""
HOLDS = "holds"
"""The attribute that says that a module holds others: only nn.MultiheadAttention is counted nevertheless."""

_FLOPS = torch_counter(
    "torchscan",
    __name__,
    FLOP,
    "torchscan's crawl_module: formulas for modules that hold no others",
    title="torchscan.crawl_module",
    requirements=("torchscan==0.2.0",),
    checked=("0.2.0", "0.2.0"),
)
COUNTERS = (
    _FLOPS,
    _FLOPS._replace(
        name="torchscan@macs",
        unit=MAC,
        summary="torchscan's second number: multiply-adds, and elementwise work at 1",
        title="torchscan.crawl_module (MACs)",
    ),
)
