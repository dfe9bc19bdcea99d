"""Counters of which only the capture is written: a test has their rules drafted."""

from reconcile.core.counter import Counter
from reconcile.core.records import FLOP, MAC


def _counter(name, unit):
    return Counter(
        name=name,
        module=__name__,
        framework="torch",
        unit=unit,
        package="",
        distribution="",
        versions_key="strange",
        summary=name,
        default=False,
        blind="sees the forward pass only",
    )


COUNTERS = (
    _counter("biases_twice", MAC),
    _counter("operations", FLOP),
    _counter("parameters", MAC),
    _counter("noise", MAC),
)
