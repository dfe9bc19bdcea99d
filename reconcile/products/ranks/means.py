"""Gradients that are means: ranks scale the very tensors that they add, and one device does no such thing."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.records import BACKWARD, Tensor
from ...core.results import TraceRow
from ...work.collectives import is_collective
from .moved import Cell, phase_of

SCALING = "aten.mul"
MEANS = "aten.mul of what ranks add"
"""A place of its own for these among the products of a layer."""
Reduced = tuple[str, str, tuple[Tensor, ...]]
"""A layer, a phase, and a tensor that a collective takes there."""


def reduced_tensors(rows: Iterable[TraceRow]) -> frozenset[Reduced]:
    """The tensors that collectives take, with their layers and phases."""
    return frozenset((row.layer, phase_of(row), (t,)) for row in rows if is_collective(row.op) for t in row.inputs)


def name_op(row: TraceRow, tensors: frozenset[Reduced]) -> str:
    """The op, or a name of its own for one that scales such a tensor: gradients in a row, as DistributedDataParallel has them."""
    flat = all(len(tensor.shape or ()) == 1 for tensor in row.outputs)
    return MEANS if flat and phase_of(row) == BACKWARD and _scales(row, tensors) else row.op


def is_averaged(cell: Cell, tensors: frozenset[Reduced]) -> bool:
    """Whether ranks scale such tensors, and one device has nothing here."""
    return not cell.one and all(_scales(row, tensors) for rows in cell.parts.values() for row in rows)


def _scales(row: TraceRow, tensors: frozenset[Reduced]) -> bool:
    return row.op == SCALING and (row.layer, phase_of(row), row.outputs) in tensors
