"""The counters roofline and roofline@flops: JAX's own estimate of a program for a TPU, equation by equation of its jaxpr."""

from ....core.records import FLOP
from ...jax import REQUIREMENTS
from .. import framework_counter

PRODUCTS_ONLY = "roofline@flops"
"""The counter that leaves out all but ``dot_general``."""
NOT_ENTERED = "not_entered"
"""Attribute of an op that ran in programs that the counter does not enter, with as calls how often it ran there."""

_UNFUSED = framework_counter(
    "roofline",
    __name__,
    FLOP,
    "unfused_flops of jax.experimental.roofline: every equation of a program as if nothing were fused",
    framework="jax",
    versions_key="jax",
    requirements=REQUIREMENTS,
    checked=("0.10.2", "0.12.0.1"),
    rare=True,
)
COUNTERS = (
    _UNFUSED,
    _UNFUSED._replace(name=PRODUCTS_ONLY, summary="flops of jax.experimental.roofline: its matrix products alone"),
)
