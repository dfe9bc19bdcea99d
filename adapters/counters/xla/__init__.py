"""The counters xla@*, XLA's own cost analysis of a JAX program: of the lowered one, the compiled one, and in linen's table."""

from ....core.records import FLOP
from ...jax import REQUIREMENTS
from .. import framework_counter

TARGET = "target"
"""Attribute of a custom call: what it calls."""
LOWERED = "lowered"
"""Attribute of an instruction of the program before it is compiled, beside those of the compiled program that is counted."""
DROPPED = "dropped"
"""Attribute of an instruction that JAX's text of the program has, and the program that XLA made of that text has not."""

_LOWERED = framework_counter(
    "xla@lowered",
    __name__,
    FLOP,
    "XLA's cost_analysis() of the lowered program, before any optimisation",
    framework="jax",
    versions_key="jaxlib",
    requirements=REQUIREMENTS,
    checked=("0.7.2", "0.12.0.1"),
)
COUNTERS = (
    _LOWERED,
    _LOWERED._replace(
        name="xla@compiled", summary="XLA's cost_analysis() of the compiled program, as this machine runs it"
    ),
    _LOWERED._replace(
        name="xla@tabulate",
        summary="the row of the whole model in Flax linen's tabulate(compute_flops=True), which is XLA's cost_analysis()",
        rare=True,
        blind="is a table of the forward pass",
    ),
)
