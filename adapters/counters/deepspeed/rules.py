"""What DeepSpeed's flops profiler counts. Lines are of deepspeed 0.19.8. Units FLOP and, for deepspeed@macs, MAC."""

from __future__ import annotations

from functools import partial

from ..call_bridge import Calls, bridge_calls
from ..functional_rules import attention, broadcast, einsum, elementwise, matmul, resized, scaled_up, transposed
from ..functional_table import RESIZING, SHARED, TRANSPOSED, Formula, fill, why_not
from ..rulebook import RuleBook
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"P": "deepspeed/profiling/flops_profiler/profiler.py"})

PRODUCTS = ("torch.mm", "torch.Tensor.mm", "torch.bmm", "torch.Tensor.bmm", "torch.Tensor.__matmul__")
_ELEMENTS = "elements of the result; of the one tensor; 1 of two numbers"

fill(
    BOOK,
    {
        **SHARED,
        "transposed": Formula(
            TRANSPOSED,
            transposed,
            "2 B prod(input) prod(kernel) Cin (Cout // groups) + Cout B prod(output) if bias",
            macs=True,
        ),
        "resized": Formula(RESIZING, resized(scaled_up), "prod(size) if a size is given; else N prod(scale)"),
        "mm": Formula(PRODUCTS, matmul, SHARED["matmul"].text, macs=True),
        "attention": Formula(
            ("torch.nn.functional.scaled_dot_product_attention",),
            attention,
            "2 numel(q) Sk + 2 (numel(q) / D) Sk Dv, a causal mask saves nothing",
            macs=True,
        ),
        "einops": Formula(("einops.einsum",), einsum, SHARED["einsum"].text),
        "mul": Formula(("torch.mul", "torch.Tensor.mul"), elementwise("mul", broadcast), _ELEMENTS),
        "add": Formula(("torch.add", "torch.Tensor.add"), elementwise("add", broadcast), _ELEMENTS),
    },
    {
        "linear": "P:523",
        "conv": "P:569",
        "transposed": "P:614",
        "relu": "P:529",
        "prelu": "P:533",
        "elu": "P:537",
        "leaky_relu": "P:541",
        "relu6": "P:545",
        "silu": "P:549",
        "gelu": "P:553",
        "avg_pool": "P:557",
        "max_pool": "P:557",
        "batch_norm": "P:665",
        "norm": "P:683, P:695, P:705",
        "resized": "P:720",
        "softmax": "P:749",
        "embedding": "P:753",
        "matmul": "P:769",
        "mm": "P:769, P:949",
        "addmm": "P:777, P:830",
        "einsum": "P:785",
        "einops": "P:807",
        "attention": "P:863",
        "mul": "P:838, P:846",
        "add": "P:842, P:846",
        "recurrent": "P:1067, P:1041",
        "cell": "P:1095, P:1041",
    },
)

bridge = partial(bridge_calls, calls=Calls("deepspeed", BOOK, partial(why_not, "deepspeed")))
