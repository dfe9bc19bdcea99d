"""Bridges the functions that ultralytics-thop counts (matmul, einsum, attention) to the ops of the trace, module by module.

A function and the ops that ran in it are matched by their products: reconcile's formula for the function gives the multiply-adds
of one call, and the ops of the calling module with that many are its own.  If fewer calls were counted than ran, the others were
made where the counter does not look; if more were counted, the model ran other ops, and nothing is booked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from ....work import ZERO, Work, is_integer_op, sum_works
from ..bridge import Item, View, known_work, make_item, other_ops, sum_of, unknown_of
from . import FUNCTIONS, entry_of
from .rules import BOOK

ATTENTION = "torch.multi_head_attention_forward"
PARTS = ("aten._softmax", "aten.softmax", "aten._safe_softmax")
"""The ops of an attention beside its products that its rule counts."""


def is_function(sighting: Sighting) -> bool:
    """Whether a sighting is a call of a function."""
    return sighting.entry.endswith(f"|{FUNCTIONS}")


@dataclass(frozen=True, slots=True)
class _Group:
    """Calls of functions in one module and the ops that they may have run: both have the same products."""

    counter: str
    layer: str
    calls: Sequence[tuple[Op, Work]]
    ops: Sequence[Op]


def bridge_functions(view: View, functions: Sequence[Op], trace: Trace) -> tuple[list[Item], tuple[Op, ...]]:
    """The items of counted functions, and the ops of the trace that belong to none of them."""
    items: list[Item] = []
    taken: set[str] = set()
    for layer in dict.fromkeys(op.layer for op in functions):
        ran = [op for op in trace.ops if op.layer == layer]
        counted = [(op, BOOK.counts(op, view.versions)) for op in functions if op.layer == layer]
        groups: dict[Work, list[tuple[Op, Work]]] = {}
        whole: list[tuple[Op, Work]] = []
        for call, work in counted:
            if not work:
                continue
            twin = _twin(call)
            if twin is None:
                whole.append((call, work))
            elif is_integer_op(twin):
                items.append(_of_integers(call, work))
            else:
                groups.setdefault(_products(known_work(twin) or ZERO), []).append((call, work))
        for products, calls in groups.items():
            ops = [op for op in ran if products and _products(known_work(op) or ZERO) == products]
            taken.update(op.id for op in ops)
            items.append(_item(_Group(view.counter, layer, calls, ops)))
        if whole:
            ops = [op for op in ran if op.id not in taken and ((known_work(op) or ZERO).mac or op.op in PARTS)]
            taken.update(op.id for op in ops)
            items.append(_of_attention(_Group(view.counter, layer, whole, ops)))
    return items, tuple(op for op in trace.ops if op.id not in taken)


def _twin(op: Op) -> Op | None:
    """The op of PyTorch that does what the function does; None for several ops."""
    return None if op.op == ATTENTION else op._replace(op=op.op.replace("torch.", "aten."), calls=1)


def _products(work: Work) -> Work:
    """The multiply-adds of a function or an op; the whole work if it has none (an einsum that sums nothing)."""
    return Work(mac=work.mac) if work.mac else work


def _of_integers(call: Op, work: Work) -> Item:
    rule, entry = BOOK.of(call, {}), entry_of(call.layer)
    return make_item(call, rule, counted=work, seen=call.calls, cause=Cause.INTEGER_OP, entry=entry)


def _item(group: _Group) -> Item:
    """Call by call if all calls count the same and all ops do the same work; else all calls at once."""
    (first, counted), op = group.calls[0], group.ops[0] if group.ops else None
    seen, times = sum(call.calls for call, _ in group.calls), sum(op.calls for op in group.ops)
    works = {(work, work.masked) for work in (known_work(op) or ZERO for op in group.ops)}
    if len({work for _, work in group.calls}) > 1 or len(works) > 1:
        return _at_once(group, "" if seen == times else f"{seen} of {times} calls with these products were counted")
    gap = ""
    if op is None or seen > times:
        shapes = " x ".join(str(tensor.shape) for tensor in first.inputs)
        gap = other_ops(
            group.counter, group.layer, f"{first.op} {shapes} was called {seen} times, and {times} such ops ran"
        )
    return make_item(
        first,
        BOOK.of(first, {}),
        layer=group.layer,
        counted=counted,
        seen=seen,
        ran=works.pop()[0] if works else ZERO,
        times=times,
        repeat=Cause.CALL_NOT_SEEN,
        entry=entry_of(group.layer),
        ops=tuple(op.id for op in group.ops),
        gap=gap,
        unknown=unknown_of(group.ops),
    )


def _at_once(group: _Group, difference: str) -> Item:
    first = group.calls[0][0]
    return make_item(
        first,
        BOOK.of(first, {}),
        layer=group.layer,
        met=(call for call, _ in group.calls),
        counted=sum_works(work * call.calls for call, work in group.calls),
        seen=1,
        ran=sum_of(group.ops),
        times=1,
        entry=entry_of(group.layer),
        ops=tuple(op.id for op in group.ops),
        gap=other_ops(group.counter, group.layer, difference) if difference else "",
        unknown=unknown_of(group.ops),
    )


def _of_attention(group: _Group) -> Item:
    """Multi-head attention as a function: its projections and products are ops of the module that calls it."""
    macs = sum(work.mac * call.calls for call, work in group.calls)
    ran = sum_of(group.ops).mac
    return _at_once(group, "" if macs == ran else f"its attention has {macs:,} multiply-adds, and {ran:,} ran")
