"""Distributes what a counter observed of each dispatched call over the merged records of a program's step.

The recorder merges equal calls when the step is done.  A counter keeps its observations by ``call_key``, each with a number of
calls, and every record draws as many of them as it has calls (``draw_calls``).  The nested counters torch_profiler and
cpu_libraries use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

from ...core.records import INSIDE, REST, Op

T = TypeVar("T")


def call_key(op: Op, layer: str) -> tuple[Any, ...]:
    """What tells dispatched calls apart; the recorder splits a call of several gradients into parts, and what its kernel ran."""
    attrs = {name: value for name, value in op.attrs.items() if name not in ("part", INSIDE, REST)}
    return layer, op.op, op.inputs, repr(sorted(attrs.items()))


def join_phases(ops: Sequence[Op]) -> list[Op]:
    """The ops, those of another library's as one record for all phases of what ran in their kernels: a counter that sees what a
    call ran does not know which gradient that was for."""
    rest: dict[Any, list[Op]] = {}
    for op in ops:
        if REST in op.attrs:
            rest.setdefault((call_key(op, op.layer), op.calls), []).append(op)
    joined: list[Op] = []
    for op in ops:
        inside = op.attrs.get(INSIDE)
        if isinstance(inside, list) and REST not in op.attrs:
            more = [part for other in rest.pop((call_key(op, op.layer), op.calls), []) for part in other.attrs[INSIDE]]
            op = op._replace(attrs={**op.attrs, INSIDE: [*inside, *more]})
        if REST not in op.attrs:
            joined.append(op)
    return joined + [op for others in rest.values() for op in others]


def draw_calls(pool: Counter[T], calls: int) -> tuple[list[tuple[T, int]], int]:
    """Take what as many calls saw out of the pool: each with its calls, and the calls for which nothing is left."""
    found = []
    for seen in list(pool):
        several = min(calls, pool[seen])
        if several:
            pool[seen] -= several
            calls -= several
            found.append((seen, several))
    return found, calls
