"""Rules of DeepSpeed's FLOPs profiler: what it counts for one call of a function. Units FLOP and, for deepspeed@macs, MAC.

Lines are of deepspeed 0.19.8.
"""

from __future__ import annotations

from functools import partial

from ..patched_functions.bridge import FunctionCalls, bridge_calls
from ..patched_functions.rules import (
    attention,
    broadcast,
    einsum,
    elementwise,
    from_the_left,
    matmul,
    resize_rule,
    scaled_by_batch,
    scaled_up,
    transposed_convolution,
    transposed_twice_grouped,
)
from ..patched_functions.shared_formulas import (
    FROM_THE_LEFT,
    RESIZING,
    SHARED,
    TRANSPOSED,
    TWICE_GROUPED,
    Formula,
    register_formulas,
    why_not,
)
from ..rulebook import RuleBook
from . import COUNTERS

FILES = {
    "P": "deepspeed/profiling/flops_profiler/profiler.py",
    "OLD": "deepspeed/profiling/flops_profiler/profiler.py (0.17.1)",
}
BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, FILES)

PRODUCTS = ("torch.mm", "torch.Tensor.mm", "torch.bmm", "torch.Tensor.bmm", "torch.Tensor.__matmul__")
_ELEMENTS_OF_RESULT = "elements of the result; of the one tensor; 1 of two numbers"
MUL, ADD = ("torch.mul", "torch.Tensor.mul"), ("torch.add", "torch.Tensor.add")
CORRECTED, BEFORE = ">=0.19.7", "<0.19.7"

LINES = {
    "linear": "P:523", "conv": "P:569", "transposed": "P:614", "transposed_before": "OLD:609", "relu": "P:529",
    "prelu": "P:533", "elu": "P:537", "leaky_relu": "P:541", "relu6": "P:545", "silu": "P:549", "gelu": "P:553",
    "avg_pool": "P:557", "max_pool": "P:557", "batch_norm": "P:665", "norm": "P:683, P:695, P:705", "resized": "P:720",
    "resized_before": "OLD:710", "softmax": "P:749", "embedding": "P:753", "matmul": "P:769", "mm": "P:769, P:949",
    "addmm": "P:777, P:830", "einsum": "P:785", "einops": "P:807", "attention": "P:863", "mul": "P:838, P:846",
    "add": "P:842, P:846", "mul_before": "OLD:824, OLD:832", "add_before": "OLD:828, OLD:832",
    "recurrent": "P:1067, P:1041", "cell": "P:1095, P:1041",
}  # fmt: skip
"""Where each formula stands."""

register_formulas(
    BOOK,
    {
        **SHARED,
        "transposed": Formula(
            TRANSPOSED,
            transposed_convolution,
            "2 B prod(input) prod(kernel) Cin (Cout // groups) + Cout B prod(output) if bias",
            macs=True,
            versions=CORRECTED,
        ),
        "transposed_before": Formula(TRANSPOSED, transposed_twice_grouped, TWICE_GROUPED, macs=True, versions=BEFORE),
        "resized": Formula(
            RESIZING, resize_rule(scaled_up), "prod(size) if a size is given; else N prod(scale)", versions=">=0.17.2"
        ),
        "resized_before": Formula(
            RESIZING,
            resize_rule(scaled_by_batch),
            "prod(size) if a size is given; else N scale^B, or N prod(scale) of B scales: len(input) is B",
            versions="<0.17.2",
        ),
        "mm": Formula(PRODUCTS, matmul, SHARED["matmul"].text, macs=True),
        "attention": Formula(
            ("torch.nn.functional.scaled_dot_product_attention",),
            attention,
            "2 numel(q) Sk + 2 (numel(q) / D) Sk Dv, a causal mask saves nothing",
            macs=True,
        ),
        "einops": Formula(("einops.einsum",), einsum, SHARED["einsum"].text),
        "mul": Formula(MUL, elementwise("mul", broadcast), _ELEMENTS_OF_RESULT, versions=CORRECTED),
        "add": Formula(ADD, elementwise("add", broadcast), _ELEMENTS_OF_RESULT, versions=CORRECTED),
        "mul_before": Formula(MUL, elementwise("mul", from_the_left), FROM_THE_LEFT, versions=BEFORE),
        "add_before": Formula(ADD, elementwise("add", from_the_left), FROM_THE_LEFT, versions=BEFORE),
    },
    LINES,
)

bridge = partial(bridge_calls, calls=FunctionCalls("deepspeed", BOOK, partial(why_not, "deepspeed")))
