"""thop.profile: hooks on modules of known classes. Python 3.6."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="thop",
        module=__name__,
        framework="torch",
        unit=MAC,
        package="thop",
        distribution="thop",
        versions_key="thop",
        summary="thop.profile: hooks on modules of known classes",
        default=True,
        blind="sees the forward pass only",
        title="thop.profile",
    ),
)
