"""DeepSpeed's flops profiler: functions of PyTorch that it patches while a model runs. Python 3.6."""

from ....core.counter import Counter
from ....core.records import FLOP, MAC

FORWARD_ONLY = "runs the forward pass only, and takes twice that for the backward pass"
REQUIREMENTS = (
    "deepspeed==0.19.8",
    "einops==0.8.2",
    "hjson==3.1.0",
    "msgpack==1.2.4",
    "psutil==7.2.2",
    "py-cpuinfo==9.0.0",
    "pydantic==2.14.3",
    "pydantic-core==2.50.4",
    "annotated-types==0.8.0",
    "typing-inspection==0.4.5",
    "tqdm==4.70.1",
)
"""DeepSpeed, and those of its requirements that its profiler imports."""


def _counter(name, unit, summary):
    # type: (str, str, str) -> Counter
    return Counter(
        name=name,
        module=__name__,
        framework="torch",
        unit=unit,
        package="deepspeed",
        distribution="deepspeed",
        versions_key="deepspeed",
        summary=summary,
        default=False,
        blind=FORWARD_ONLY,
        title="DeepSpeed's flops profiler" + (", MACs" if unit == MAC else ""),
        requirements=REQUIREMENTS,
    )


COUNTERS = (
    _counter(
        "deepspeed", FLOP, "DeepSpeed's flops profiler: functions that it patches, and hooks of recurrent modules"
    ),
    _counter("deepspeed@macs", MAC, "its MACs: the same functions, without recurrent modules and einsum"),
)
