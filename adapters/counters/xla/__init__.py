"""XLA's own cost analysis of a JAX program: of what JAX hands to the compiler, and of what the compiler makes of it."""

from ....core.counter import Counter
from ....core.records import FLOP

REQUIREMENTS = ("jax==0.10.2", "jaxlib==0.10.2", "ml_dtypes==0.6.0", "opt_einsum==3.4.0", "scipy==1.17.1")

_SEEN = Counter(
    name="xla@lowered",
    module=__name__,
    framework="jax",
    unit=FLOP,
    package="",
    distribution="",
    versions_key="jaxlib",
    summary="XLA's cost_analysis() of the lowered program, before any optimisation",
    default=False,
    blind="sees the forward pass only",
    requirements=REQUIREMENTS,
)
COUNTERS = (
    _SEEN,
    _SEEN._replace(
        name="xla@compiled", summary="XLA's cost_analysis() of the compiled program, as this machine runs it"
    ),
)
