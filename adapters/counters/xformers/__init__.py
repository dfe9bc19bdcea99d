"""The counter xformers, the TFlop/step of its profiler: torch.profiler's outermost counted events, and attention's formula."""

from ....core.records import FLOP
from .. import torch_counter

COUNTERS = (
    torch_counter(
        "xformers",
        __name__,
        FLOP,
        "xformers' profiler: torch.profiler's counted events, each but once, and attention, causal or not",
        "lists the operators of a backward pass without the modules that they belong to: only a call of the model is "
        "reconciled",
        title="xformers.profiler",
        requirements=("xformers==0.0.35",),
        checked=("0.0.35", "0.0.35"),
    ),
)
ATTENTION = "aten::scaled_dot_product_attention"
FLOATS = ("float64", "float32", "float16", "bfloat16")
"""Events of which no tensor has one of these types are left out."""
