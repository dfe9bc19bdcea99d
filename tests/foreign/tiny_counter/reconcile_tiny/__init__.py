"""The counter `tiny`, for reconcile."""

from reconcile.core.counter import Counter
from reconcile.core.records import MAC

COUNTERS = Counter(
    name="tiny",
    module=__name__,
    framework="torch",
    unit=MAC,
    package="tiny",
    distribution="tiny",
    versions_key="tiny",
    summary="tiny: hooks on Linear and Conv2d",
    default=False,
    blind="sees the forward pass only",
)
