"""The counter flop_counter, PyTorch's FlopCounterMode (torch.utils.flop_counter): it counts ATen ops at the dispatcher."""

from ....core.records import FLOP
from .. import framework_counter

COUNTERS = (
    framework_counter(
        "flop_counter",
        __name__,
        FLOP,
        "torch.utils.flop_counter: ops at the dispatcher",
        default=True,
        title="torch.utils.flop_counter",
        checked=("2.1", "2.15.0"),
        leads=("step",),
    ),
)
