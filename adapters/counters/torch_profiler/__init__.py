"""The counter torch.profiler (with_flops): seven operators, by the shapes of their inputs."""

from ....core.records import FLOP
from .. import framework_counter

COUNTERS = (
    framework_counter(
        "torch.profiler",
        __name__,
        FLOP,
        "torch.profiler with_flops: seven operators by the shapes of their inputs",
        blind="lists the operators of a backward pass without the modules that they belong to: only a call of the model is "
        "reconciled",
        nested=f"{__name__}.nested",
    ),
)
EVENTS = "events"
"""Attribute of an op: the counted events that it is or runs, as [name, shapes of tensors, other arguments, times per call]."""
FORMULAS = ("aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mul", "aten::add")
"""The events that the profiler has a formula for."""
