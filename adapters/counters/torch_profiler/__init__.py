"""The counter torch.profiler (with_flops): seven operators, by the shapes of their inputs."""

from ....core.counter import Counter
from ....core.records import FLOP

COUNTERS = (
    Counter(
        name="torch.profiler",
        module=__name__,
        framework="torch",
        unit=FLOP,
        package="",
        distribution="",
        versions_key="torch",
        summary="torch.profiler with_flops: seven operators by the shapes of their inputs",
        default=False,
        blind="lists the operators of a backward pass without the modules that they belong to: only a call of the model is "
        "reconciled",
        nested=True,
    ),
)
EVENTS = "events"
"""Attribute of an op: the counted events that it is or runs, as [name, shapes of tensors, other arguments, times per call]."""
FORMULAS = ("aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mul", "aten::add")
"""The events that the profiler has a formula for."""
