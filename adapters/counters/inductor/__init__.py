"""The counter inductor, torch.compile's own count: count_flops_fx of the nodes of the graphs that inductor compiles."""

from ....core.records import FLOP
from .. import framework_counter

NAMELESS = "tag:nameless"
"""Attribute of a node that names no module: of a function that torch.compile compiles by itself, a step of a loop, say."""
COUNTERS = (
    framework_counter(
        "inductor",
        __name__,
        FLOP,
        "inductor's count_flops_fx: the nodes of the graphs that torch.compile makes",
        blind="counts the graphs of a call here",
        title="inductor's count_flops_fx",
        checked=("2.13.0", "2.13.0"),
    ),
)
