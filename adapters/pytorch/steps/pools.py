"""What a counter of a program's own step saw of each call, given to the records of the step.

The recorder merges calls that are alike when the step is done.  A counter keeps what it saw by what tells calls apart, with how
many calls saw it, and each record takes as much of that as it has calls.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

from ....core.records import Op

T = TypeVar("T")


def call_key(op: Op, layer: str) -> tuple[Any, ...]:
    """What tells dispatched calls apart; the recorder splits a call of several gradients into parts."""
    attrs = {name: value for name, value in op.attrs.items() if name != "part"}
    return layer, op.op, op.inputs, repr(sorted(attrs.items()))


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
