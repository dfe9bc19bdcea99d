"""Rules of calflops: what it counts for one call of a function. Units FLOP and, for calflops@macs, MAC.

Lines are of calflops 0.3.2, calflops/pytorch_ops.py.
"""

from __future__ import annotations

from functools import partial

from ..patched_functions.bridge import FunctionCalls, bridge_calls
from ..patched_functions.rules import (
    as_large_as_input,
    elementwise,
    from_the_left,
    matmul,
    of_torch,
    resize_rule,
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

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"O": "calflops/pytorch_ops.py"})

LINES = {
    "linear": "O:37", "conv": "O:83", "transposed": "O:128", "relu": "O:43", "prelu": "O:47", "elu": "O:51",
    "leaky_relu": "O:55", "relu6": "O:59", "silu": "O:63", "gelu": "O:67", "avg_pool": "O:71", "max_pool": "O:71",
    "batch_norm": "O:174", "norm": "O:192, O:204, O:214", "resized": "O:229", "softmax": "O:254", "embedding": "O:258",
    "matmul": "O:274", "addmm": "O:282, O:312", "mm": "O:274", "einsum": "O:290", "mul": "O:320, O:328",
    "add": "O:324, O:328", "recurrent": "O:397, O:371", "cell": "O:425, O:371",
}  # fmt: skip
"""Where each formula stands."""

register_formulas(
    BOOK,
    {
        **SHARED,
        "transposed": Formula(
            TRANSPOSED,
            transposed_twice_grouped,
            TWICE_GROUPED,
            macs=True,
        ),
        "resized": Formula(
            RESIZING, resize_rule(as_large_as_input), "prod(size) if a size is given; else N of the input"
        ),
        # From 0.2.8 on their lines are comments; 0.2.8 itself looks up at its end what it did not keep, and does not run.
        "mm": Formula((*of_torch("mm"), *of_torch("bmm")), matmul, SHARED["matmul"].text, macs=True, versions="<0.2.8"),
        "mul": Formula(("torch.mul", "torch.Tensor.mul"), elementwise("mul", from_the_left), FROM_THE_LEFT),
        "add": Formula(("torch.add", "torch.Tensor.add"), elementwise("add", from_the_left), FROM_THE_LEFT),
    },
    LINES,
)

bridge = partial(bridge_calls, calls=FunctionCalls("calflops", BOOK, partial(why_not, "calflops")))
