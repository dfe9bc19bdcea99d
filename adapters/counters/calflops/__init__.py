"""calflops: functions of PyTorch that it patches while a model runs. Python 3.6."""

from ....core.counter import Counter
from ....core.records import FLOP, MAC

FORWARD_ONLY = "runs the forward pass only, and multiplies it for a training step"


def _counter(name, unit, summary):
    # type: (str, str, str) -> Counter
    return Counter(
        name=name,
        module=__name__,
        framework="torch",
        unit=unit,
        package="calflops",
        distribution="calflops",
        versions_key="calflops",
        summary=summary,
        default=False,
        blind=FORWARD_ONLY,
        requirements=REQUIREMENTS,
    )


REQUIREMENTS = ("calflops==0.3.2", "transformers==5.23.0", "accelerate==1.15.0")
"""calflops imports the others and declares none of them."""

COUNTERS = (
    _counter("calflops", FLOP, "calflops' FLOPs: functions that it patches, and hooks of recurrent modules"),
    _counter("calflops@macs", MAC, "calflops' MACs: the same functions, without recurrent modules and einsum"),
)
