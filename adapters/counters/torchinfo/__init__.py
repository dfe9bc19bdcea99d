"""torchinfo.summary: the parameters of every module without children, times positions of its output. Python 3.6."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="torchinfo",
        module=__name__,
        framework="torch",
        unit=MAC,
        package="torchinfo",
        distribution="torchinfo",
        versions_key="torchinfo",
        summary="torchinfo.summary: total_mult_adds, parameters times output positions",
        default=False,
        blind="runs a model in eval mode and without gradients, so it sees the forward pass only",
    ),
)
