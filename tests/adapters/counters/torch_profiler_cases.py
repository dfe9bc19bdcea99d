"""torch.profiler's FLOPs by hand, from computeFlops in torch/csrc/profiler/util.cpp of torch 2.13."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Shape
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


FAMILIES = {"torch.profiler": (RELEASES, tuple(cases()))}
