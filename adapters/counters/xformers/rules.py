"""Rules of xformers' AnalyzedTrace: torch.profiler's FLOPs of its outermost counted events, and attention. Unit FLOP.

A = xformers/profiler/profile_analyzer.py of 0.0.35.  An event in a counted one adds nothing (A:182), and neither does one without
a tensor of floating numbers (A:219).

Besides the rules (``BOOK``), the module exports ``bridge``, which makes the items between the counter's ledger and the trace.
"""

from __future__ import annotations

from functools import partial

from ....core.records import Op, Tensor
from ....work import Work, prod
from ..rulebook import RuleBook, dims
from ..torch_profiler import EVENTS
from ..torch_profiler.bridge import Reader, bridge_events
from ..torch_profiler.rules import BOOK as PROFILER
from ..torch_profiler.rules import of_events
from . import ATTENTION, COUNTERS, FLOATS

BOOK = RuleBook(
    COUNTERS[0].family, COUNTERS[0].versions_key, {"A": "xformers/profiler/profile_analyzer.py"}, base=PROFILER
)
CAUSAL = 5
"""Where ``is_causal`` stands among the arguments of aten::scaled_dot_product_attention."""


SOURCE = "A:24, A:34"
PRODUCTS_FORMULA = (
    "2 B N M (K + V), B of the values; causal: 2 N (M - N) K + 2 (M - N)^2 V where M > N, and min(N, M)^2 (K + V)"
)


@BOOK.rule(ATTENTION, source=SOURCE, formula=PRODUCTS_FORMULA)
def _attention(op: Op) -> Work:
    # query (B, N, K), value (B, M, V): the batch, and the heads, are those of the values
    (*_, queries, width), (*batch, keys, wide) = dims(op.inputs[0].shape), dims(op.inputs[2].shape)
    if op.attrs["arguments"][CAUSAL]:
        more, square = max(keys - queries, 0), min(queries, keys) ** 2
        flops = 2 * queries * more * width + 2 * more**2 * wide + square * (width + wide)
    else:
        flops = 2 * queries * keys * (width + wide)
    flops *= prod(batch)
    return Work(mac=flops // 2, add=flops % 2)  # half a multiply-add is one operation


@BOOK.pattern(
    "an operator that is or runs attention",
    lambda op: [event[0] for event in op.attrs.get(EVENTS, ())] == [ATTENTION],
    source=SOURCE,
    formula=PRODUCTS_FORMULA,
)
def _of_attention(op: Op) -> Work:
    ((_, shapes, arguments, times),) = op.attrs[EVENTS]
    inputs = tuple(Tensor(tuple(shape), "") for shape in shapes)
    return _attention(op._replace(inputs=inputs, attrs={"arguments": arguments})) * times


def counts(op: Op) -> bool:
    """Whether an event adds to the number, if no other lies around it."""
    return BOOK.find(op.op, {}) is not None and any(t.dtype in FLOATS for t in op.inputs)


def _arguments(op: Op) -> list[bool]:
    return [False] * CAUSAL + [bool(op.attrs.get("is_causal"))]


SUM_OF_OUTERMOST = "the sum of those that lie in no other; 0 for numbers that are not floating"
of_events(BOOK, counts, "A:169, A:219", SUM_OF_OUTERMOST, _arguments)

ADDS_UP_NONE_OF_IT = "xformers adds up no {}: torch.profiler has no formula for it, or its numbers are not floating"
bridge = partial(bridge_events, reader=Reader(BOOK, counts, ADDS_UP_NONE_OF_IT, outermost=True))
