"""xformers' FLOPs by hand, from xformers/profiler/profile_analyzer.py of 0.0.35."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape, Tensor
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("0.0.35",)
SDPA = "scaled_dot_product_attention"


def arguments(causal: bool) -> list[Any]:
    """Those of aten::scaled_dot_product_attention: three tensors, a mask, dropout, and then whether it is causal."""
    return [None, None, None, None, 0.0, causal, None, False]


def attention(work: Work, total: int, causal: bool, *shapes: Shape) -> Iterator[Case]:
    """The event by itself, the op that ran in one such event, and the op as a trace has it."""
    given = arguments(causal)
    yield Case(op(f"aten::{SDPA}", shapes, [], arguments=given), RELEASES, total, work)
    kernel, event = f"aten._{SDPA}_flash", [f"aten::{SDPA}", [[*shape] for shape in shapes], given, 1]
    yield Case(op(kernel, shapes, [], events=[event]), RELEASES, total, work)
    yield Case(op(f"aten.{SDPA}", shapes, [], is_causal=causal), RELEASES, total, work)


def cases() -> Iterator[Case]:
    # 6 heads of 5 queries and 5 keys of 4: scores and values, 2 * 25 * 4 each (A:38).
    query, long, wide = (2, 3, 5, 4), (2, 3, 9, 4), (2, 3, 9, 7)
    yield from attention(Work(mac=6 * 25 * 8), 6 * 400, False, query, query, query)
    # Causal: half of it (A:34).
    yield from attention(Work(mac=6 * 25 * 4), 6 * 200, True, query, query, query)
    # 5 queries, 9 keys, and values of 7: 2 * 5 * 4 * 4 + 2 * 4 * 4 * 7 + 5 * 5 * (4 + 7) (A:32).
    yield from attention(Work(mac=6 * (80 + 112) + 6 * 275 // 2), 6 * (160 + 224 + 275), True, query, long, wide)
    # 9 queries, 5 keys: the square of the smaller.
    yield from attention(Work(mac=6 * 25 * 4), 6 * 200, True, long, query, query)
    # Six heads of queries on three of keys: B is that of the values (A:29).
    yield from attention(Work(mac=6 * 25 * 8), 6 * 400, False, (2, 6, 5, 4), query, query)
    # Half of an odd number of products.
    yield from attention(Work(mac=87, add=1), 5 * 5 * 7, True, (5, 4), (5, 4), (5, 3))
    # What torch.profiler has formulas for, if a tensor is of floating numbers (A:219).
    product = [["aten::mm", [[2, 3], [3, 5]], [], 2]]
    yield Case(op("aten.mm", [(2, 3), (3, 5)], []), RELEASES, 2 * 30, Work(mac=30))
    yield Case(op("aten.linear", [(2, 3), (5, 3)], [], events=product), RELEASES, 2 * 60, Work(mac=60))
    yield Case(op("aten.sub", [(2, 3), (2, 3)], []), RELEASES)
    whole = tuple(Tensor(shape, "int64") for shape in ((2, 3), (3, 5)))
    yield Case(Op("mm", "aten.mm", "", whole, (), {}), RELEASES)
    # A convolution without a batch: torch.profiler gives it none.
    tensors, of = [(4, 16, 9), (6, 4, 3, 2), (6,)], [None, None, None, [1, 1], [0, 1], [1, 2], 1]
    event = ["aten::conv2d", [[*shape] for shape in tensors], of, 1]
    yield Case(op("aten.convolution", tensors, [], events=[event]), RELEASES, missed=Cause.OP_NOT_COUNTED)


FAMILIES = {"xformers": (RELEASES, tuple(cases()))}
