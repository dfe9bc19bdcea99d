"""The counter flop_counter, PyTorch's FlopCounterMode (torch.utils.flop_counter): it counts ATen ops at the dispatcher."""

from ....core.counter import Counter
from ....core.records import FLOP

COUNTERS = (
    Counter(
        name="flop_counter",
        module=__name__,
        framework="torch",
        unit=FLOP,
        package="",
        distribution="",
        versions_key="torch",
        summary="torch.utils.flop_counter: ops at the dispatcher",
        default=True,
        blind="",
        title="torch.utils.flop_counter",
        checked=("2.1", "2.15.0"),
        leads=("step",),
        nested=True,
    ),
)
