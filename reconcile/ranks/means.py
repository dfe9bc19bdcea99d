"""Gradients that are means: ranks scale the very tensors that they add, and one device does no such thing."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.records import Tensor
from ..core.results import TraceRow
from ..work.collectives import is_collective
from .moved import Cell, phase_of

SCALING = "aten.mul"
Reduced = tuple[str, str, tuple[Tensor, ...]]
"""A layer, a phase, and a tensor that a collective takes there."""


def reduced(rows: Iterable[TraceRow]) -> frozenset[Reduced]:
    """The tensors that collectives take, with their layers and phases."""
    return frozenset((row.layer, phase_of(row), (t,)) for row in rows if is_collective(row.op) for t in row.inputs)


def averaged(cell: Cell, tensors: frozenset[Reduced]) -> bool:
    """Whether ranks scale such tensors, and one device has nothing here."""
    rows = [row for rows in cell.parts.values() for row in rows]
    return not cell.one and all(
        row.op == SCALING and (row.layer, phase_of(row), row.outputs) in tensors for row in rows
    )
