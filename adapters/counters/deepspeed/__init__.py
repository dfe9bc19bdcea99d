"""The counter deepspeed, DeepSpeed's FLOPs profiler: it patches functions of PyTorch while a model runs."""

from ....core.records import FLOP, MAC
from .. import torch_counter

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

_FLOPS = torch_counter(
    "deepspeed",
    __name__,
    FLOP,
    "DeepSpeed's flops profiler: functions that it patches, and hooks of recurrent modules",
    "runs the forward pass only, and takes twice that for the backward pass",
    title="DeepSpeed's flops profiler",
    requirements=REQUIREMENTS,
)
COUNTERS = (
    _FLOPS,
    _FLOPS._replace(
        name="deepspeed@macs",
        unit=MAC,
        summary="its MACs: the same functions, without recurrent modules and einsum",
        title="DeepSpeed's flops profiler, MACs",
    ),
)
