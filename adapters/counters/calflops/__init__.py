"""The counter calflops, a fork of DeepSpeed's FLOPs profiler: it patches functions of PyTorch while a model runs."""

from ....core.records import FLOP, MAC
from .. import torch_counter

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

_FLOPS = torch_counter(
    "calflops",
    __name__,
    FLOP,
    "calflops' FLOPs: functions that it patches, and hooks of recurrent modules",
    "runs the forward pass only, and multiplies it for a training step",
    requirements=REQUIREMENTS,
)
COUNTERS = (
    _FLOPS,
    _FLOPS._replace(
        name="calflops@macs",
        unit=MAC,
        summary="calflops' MACs: the same functions, without recurrent modules and einsum",
    ),
)
