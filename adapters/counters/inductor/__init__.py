"""The counter inductor, torch.compile's own count: count_flops_fx of the nodes of the graphs that inductor compiles."""

from ....core.counter import Counter
from ....core.records import FLOP

NAMELESS = "tag:nameless"
"""Attribute of a node that names no module: of a function that torch.compile compiles by itself, a step of a loop, say."""
COUNTERS = (
    Counter(
        name="inductor",
        module=__name__,
        framework="torch",
        unit=FLOP,
        package="",
        distribution="",
        versions_key="torch",
        summary="inductor's count_flops_fx: the nodes of the graphs that torch.compile makes",
        default=False,
        blind="counts the graphs of a call here",
        title="inductor's count_flops_fx",
        checked=("2.13.0", "2.13.0"),
    ),
)
