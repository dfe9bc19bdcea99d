"""Micro-batches: what a step that cuts its batch does once for each of them, or to add them up again.

A pipeline's schedule runs each micro-batch by itself.  The gradients of a weight are added then (autograd's AccumulateGrad) and
scaled by their number (torch/distributed/pipelining/stage.py, ``scale_grads``), and the mean of a loss ends in a division for
each.  One device with the whole batch does none of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

from ..core.records import WEIGHT_GRADIENT, Tensor
from ..core.results import TraceRow
from .moved import Cell, Place, Shapes, parts_of, shapes_of

ADDED = "aten.add of gradients"
"""A place of its own for these among the additions of a layer."""
_SCALINGS = ("aten.div", "aten.mul")


def adds_gradients(row: TraceRow) -> bool:
    """Whether this adds two gradients of one weight."""
    shapes = {tensor.shape for tensor in (*row.inputs, *row.outputs)}
    return row.op == "aten.add" and row.phase == WEIGHT_GRADIENT and len(row.inputs) == 2 and len(shapes) == 1


def added(parts: Iterable[Sequence[TraceRow]], one: Sequence[TraceRow]) -> frozenset[tuple[Tensor, ...]]:
    """The gradients that some rank adds more often than the one device does."""
    alone = _additions(one)
    return frozenset(
        gradient for rows in parts for gradient, calls in _additions(rows).items() if calls > alone[gradient]
    )


def _additions(rows: Iterable[TraceRow]) -> Counter[tuple[Tensor, ...]]:
    calls = Counter[tuple[Tensor, ...]]()
    for row in rows:
        if adds_gradients(row):
            calls[row.outputs] += row.calls
    return calls


def scaled(cell: Cell, gradients: frozenset[tuple[Tensor, ...]]) -> bool:
    """Whether ranks scale gradients that they added, which one device does not."""
    rows = [row for rows in cell.parts.values() for row in rows]
    return not cell.one and all(row.op in _SCALINGS and row.outputs in gradients for row in rows)


def each(cell: Cell) -> bool:
    """Whether one rank does the one device's calls part by part: of p equal parts of one dimension, p calls for each of its."""
    taking = [rows for rows in cell.parts.values() if rows]
    if len(taking) != 1 or len(taking[0]) != len(cell.one):
        return False
    for mine, theirs in zip(taking[0], cell.one, strict=True):
        parts = parts_of(shapes_of(mine), shapes_of(theirs))
        if parts < 2 or mine.calls != parts * theirs.calls:
            return False
    return True


def elsewhere(cells: Iterable[tuple[Place, Cell]], ranks: Sequence[int]) -> set[tuple[str, str]]:
    """The phases and ops whose calls the ranks do in other layers, whole or part by part, and in all as many as one device.

    Autograd adds the gradients of a stage's input in the module that reads it first, and not in the one around it.
    """
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for (_, phase, op), cell in cells:
        groups[phase, op].append(cell)
    return {key for key, group in groups.items() if _as_many(Cell.of(group), ranks)}


def _as_many(cell: Cell, ranks: Sequence[int]) -> bool:
    """Whether the ranks do the calls of one device, each whole or part by part, and each is that of one of its shapes alone."""
    left: dict[Shapes, Fraction] = defaultdict(Fraction)
    for row in cell.one:
        left[shapes_of(row)] += row.calls
    for index, rows in cell.parts.items():
        for row in rows:
            like = [shapes for shapes in left if parts_of(shapes_of(row), shapes)]
            if len(like) != 1:
                return False
            left[like[0]] -= Fraction(row.calls * ranks[index], parts_of(shapes_of(row), like[0]))
    return not any(left.values())
