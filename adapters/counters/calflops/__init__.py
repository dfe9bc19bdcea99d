"""calflops: functions of PyTorch that it patches while a model runs. Python 3.6."""

from ....core.counter import Counter
from ....core.records import FLOP, MAC

FORWARD_ONLY = "runs the forward pass only, and multiplies it for a training step"
REQUIREMENTS = (
    "calflops==0.3.2",
    "accelerate==1.15.0",
    "huggingface-hub==0.36.2",
    "regex==2026.11.15",
    "safetensors==0.8.0",
    "tokenizers==0.22.2",
    "transformers==4.57.6",
)
"""calflops, and what it imports and does not declare."""


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


COUNTERS = (
    _counter("calflops", FLOP, "calflops' FLOPs: functions that it patches, and hooks of recurrent modules"),
    _counter("calflops@macs", MAC, "calflops' MACs: the same functions, without recurrent modules and einsum"),
)
