"""The counters torchstat and torchstat@madd, its numbers Flops and MAdd: it patches ``__call__`` of classes of leaf modules."""

from ....core.records import FLOP, MAC
from .. import torch_counter

NUMBER, MADD = "number", "madd"
"""The attribute that says which of both numbers a call is of, and its value for MAdd."""
HOLDS = "holds"
"""The attribute that says that a module holds others: its number is not read."""

_FLOPS = torch_counter(
    "torchstat",
    __name__,
    MAC,
    "torchstat's Flops: multiply-adds of modules that hold no others, of each one's last call",
    title="torchstat.stat",
    requirements=("torchstat==0.0.7", "pandas>=2.2"),
    checked=("0.0.7", "0.0.7"),
)
COUNTERS = (
    _FLOPS,
    _FLOPS._replace(
        name="torchstat@madd",
        unit=FLOP,
        summary="torchstat's MAdd: products at 2K - 1 and elementwise work, of one sample of the batch",
        title="torchstat.stat (MAdd)",
    ),
)
