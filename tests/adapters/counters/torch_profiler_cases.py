"""torch.profiler's FLOPs by hand, from computeFlops in torch/csrc/profiler/util.cpp of torch 2.13, and those of xformers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape, Tensor
from reconcile.work import ZERO, Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("2.13.0",)


def convolution(stride: list[int], padding: Any, groups: int) -> list[Any]:
    """Arguments of aten::conv2d after its three tensors: stride, padding, dilation, groups."""
    return [None, None, None, stride, padding, [1, 2], groups]


def cases() -> Iterator[Case]:
    def case(work: Work, total: int, name: str, inputs: list[Shape], **attrs: Any) -> Case:
        return Case(op(name, inputs, [], **attrs), RELEASES, total, work)

    def event(work: Work, total: int, name: str, *inputs: Shape, arguments: Any = ()) -> Case:
        return case(work, total, f"aten::{name}", list(inputs), arguments=list(arguments))

    # Height 16, kernel 3, stride 2: (16 - 3) // 2 + 1 = 7. Width 9, kernel 2 dilated to 3, padding 1: 9 + 2 - 3 + 1 = 9.
    macs = 2 * 7 * 9 * (3 * 2) * (4 // 2) * 6
    x, weight = (2, 4, 16, 9), (6, 2, 3, 2)
    yield event(Work(mac=macs), 2 * macs, "conv2d", x, weight, (6,), arguments=convolution([2, 1], [0, 1], 2))
    for shape, padding in ((x, None), (x[1:], [0, 1])):  # padding="same", and without a batch
        tensors = [shape, weight, (6,)]
        record = op("aten::conv2d", tensors, [], arguments=convolution([1, 1], padding, 2))
        yield Case(record, RELEASES, missed=Cause.OP_NOT_COUNTED)
        events = [["aten::conv2d", [[*shape], [*weight], [6]], record.attrs["arguments"], 1]]
        yield Case(op("aten.convolution", tensors, [], events=events), RELEASES, missed=Cause.OP_NOT_COUNTED)
    yield event(Work(mac=2 * 3 * 5), 60, "mm", (2, 3), (3, 5))
    yield event(ZERO, 0, "mm", (2, 0), (0, 5))
    yield event(Work(mac=2 * 3 * 5), 60, "addmm", (5,), (2, 3), (3, 5))
    yield event(Work(mac=4 * 2 * 3 * 5), 240, "bmm", (4, 2, 3), (4, 3, 5))
    yield event(ZERO, 0, "bmm", (0, 2, 3), (0, 3, 5))
    yield event(Work(mac=4 * 2 * 3 * 5), 240, "baddbmm", (4, 2, 5), (4, 2, 3), (4, 3, 5))
    # The first input alone: 3 of the 12 products of (3, 1) and (3, 4).
    yield event(Work(mul=3), 3, "mul", (3, 1), (3, 4))
    yield event(Work(add=6), 6, "add", (2, 3), (2, 3))
    yield event(Work(add=1), 1, "add", (), (2, 3))
    for name in ("sub", "add_", "mul_", "div", "linear", "conv1d", "conv3d", "convolution", "matmul", "mv", "dot"):
        yield Case(op(f"aten::{name}", [(2, 3), (2, 3)], [], arguments=[]), RELEASES)
    # An op that is dispatched counts the events that it is, or that it runs: two products in one op, two calls each.
    yield case(Work(add=6), 6, "aten.add", [(2, 3), (2, 3)], events=[["aten::add", [[2, 3], [2, 3]], [], 1]])
    yield case(Work(add=6), 6, "aten.add", [(2, 3), (2, 3)])
    yield Case(op("aten.add", [(2, 3), (2, 3)], [], events=[]), RELEASES)  # in place
    events = [["aten::mm", [[2, 3], [3, 5]], [], 2], ["aten::mul", [[4], []], [], 3]]
    yield case(Work(mac=2 * 30, mul=3 * 4), 2 * 60 + 12, "aten._trilinear", [(2, 3)], events=events)


XFORMERS_RELEASES = ("0.0.35",)
"""A is xformers/profiler/profile_analyzer.py."""
SDPA = "scaled_dot_product_attention"


def arguments(causal: bool) -> list[Any]:
    """Those of aten::scaled_dot_product_attention: three tensors, a mask, dropout, and then whether it is causal."""
    return [None, None, None, None, 0.0, causal, None, False]


def attention(work: Work, total: int, causal: bool, *shapes: Shape) -> Iterator[Case]:
    """The event by itself, the op that ran in one such event, and the op as a trace has it."""
    given = arguments(causal)
    yield Case(op(f"aten::{SDPA}", shapes, [], arguments=given), XFORMERS_RELEASES, total, work)
    kernel, event = f"aten._{SDPA}_flash", [f"aten::{SDPA}", [[*shape] for shape in shapes], given, 1]
    yield Case(op(kernel, shapes, [], events=[event]), XFORMERS_RELEASES, total, work)
    yield Case(op(f"aten.{SDPA}", shapes, [], is_causal=causal), XFORMERS_RELEASES, total, work)


def xformers() -> Iterator[Case]:
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
    yield Case(op("aten.mm", [(2, 3), (3, 5)], []), XFORMERS_RELEASES, 2 * 30, Work(mac=30))
    yield Case(op("aten.linear", [(2, 3), (5, 3)], [], events=product), XFORMERS_RELEASES, 2 * 60, Work(mac=60))
    yield Case(op("aten.sub", [(2, 3), (2, 3)], []), XFORMERS_RELEASES)
    whole = tuple(Tensor(shape, "int64") for shape in ((2, 3), (3, 5)))
    yield Case(Op("mm", "aten.mm", "", whole, (), {}), XFORMERS_RELEASES)
    # A convolution without a batch: torch.profiler gives it none.
    tensors, of = [(4, 16, 9), (6, 4, 3, 2), (6,)], [None, None, None, [1, 1], [0, 1], [1, 2], 1]
    event = ["aten::conv2d", [[*shape] for shape in tensors], of, 1]
    yield Case(op("aten.convolution", tensors, [], events=[event]), XFORMERS_RELEASES, missed=Cause.OP_NOT_COUNTED)


FAMILIES = {"torch.profiler": (RELEASES, tuple(cases())), "xformers": (XFORMERS_RELEASES, tuple(xformers()))}
