"""The counter estimate_cost: what Pallas tells XLA of a kernel, of any function, equation by equation of its jaxpr."""

from ....core.records import FLOP
from ...jax import REQUIREMENTS
from .. import framework_counter

COUNTERS = (
    framework_counter(
        "estimate_cost",
        __name__,
        FLOP,
        "flops of jax.experimental.pallas.estimate_cost: the equations of a program, no loop entered",
        framework="jax",
        versions_key="jax",
        requirements=REQUIREMENTS,
        checked=("0.10.2", "0.12.0.1"),
        rare=True,
        title="pl.estimate_cost",
    ),
)
