"""Gradient accumulation over micro-batches: ops that ranks run and one device does not (cause micro-batches of sums.py).

A pipeline's schedule runs each micro-batch by itself.  The gradients of a weight are added then (autograd's AccumulateGrad) and
scaled by their number (torch/distributed/pipelining/stage.py, ``scale_grads``), and the mean of a loss ends in a division for
each.  One device with the whole batch does none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...core.records import WEIGHT_GRADIENT, Tensor
from ...core.results import TraceRow
from .rank_calls import Cell, is_kept_part

ADDED = "aten.add of gradients"
"""An op name that tells these from the other additions of a layer."""
_SCALINGS = ("aten.div", "aten.mul")


def adds_gradients(row: TraceRow) -> bool:
    """Whether this adds two gradients of one weight."""
    shapes = {tensor.shape for tensor in (*row.inputs, *row.outputs)}
    return row.op == "aten.add" and row.phase == WEIGHT_GRADIENT and len(row.inputs) == 2 and len(shapes) == 1


def added_gradients(parts: Iterable[Sequence[TraceRow]], one: Sequence[TraceRow]) -> frozenset[tuple[Tensor, ...]]:
    """The gradients that some rank adds more often than the one device does."""
    alone = _additions(one)
    return frozenset(
        gradient for rows in parts for gradient, calls in _additions(rows).items() if calls > alone[gradient]
    )


def fewer_than_made(cell: Cell, parts: Sequence[Sequence[TraceRow]]) -> bool:
    """Whether each rank adds the gradients of a layer fewer times than it makes some there: m gradients take m - 1 additions."""
    for index, rows in cell.parts.items():
        made: dict[str, int] = {}
        for row in parts[index]:
            if row.phase == WEIGHT_GRADIENT and not adds_gradients(row):
                made[row.layer] = max(made.get(row.layer, 0), row.calls)
        if any(row.calls >= made.get(row.layer, row.calls + 1) for row in rows):
            return False
    return True


def _additions(rows: Iterable[TraceRow]) -> Counter[tuple[Tensor, ...]]:
    calls = Counter[tuple[Tensor, ...]]()
    for row in rows:
        if adds_gradients(row):
            calls[row.outputs] += row.calls
    return calls


def are_gradients_scaled(cell: Cell, gradients: frozenset[tuple[Tensor, ...]]) -> bool:
    """Whether ranks scale gradients that they added, or the parts of them that they keep; one device scales none."""
    rows = [row for rows in cell.parts.values() for row in rows]
    shapes = [tuple(tensor.shape for tensor in gradient) for gradient in gradients]
    return not cell.one and all(
        row.op in _SCALINGS and any(is_kept_part(tuple(t.shape for t in row.outputs), whole) for whole in shapes)
        for row in rows
    )
