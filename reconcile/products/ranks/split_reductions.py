"""Sums that ranks or micro-batches split: fewer additions inside each, and more between them (used by sums.py).

The causes are added-between-ranks and micro-batches.  Each sum saves one addition, and the parts are added up later: between
ranks by a collective, and between micro-batches by autograd.  Weights have gradients that are sums over the tokens, which
micro-batches split; every other sum is one that ranks split.  A rank to which several batches send their tokens makes one sum of
all of them.

Ranks that average gradients scale the very tensors that they add, and one device does no such thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from ...core.causes import Cause
from ...core.records import BACKWARD, WEIGHT_GRADIENT, Tensor
from ...core.results import TraceRow
from ...core.work import COMPONENTS, ZERO, Work
from .rank_calls import Cell, differing_sizes, phase_of, shapes_of
from .sent_bytes import is_collective

SUMS = "aten.sum"
Size = Callable[[TraceRow], int]


@dataclass(frozen=True)
class SplitSums:
    """The sums of an op: ``more`` is how many the ranks make beyond their batches' times one device's, ``extra`` how many beyond
    one device's, ``work`` what one more of them is, and ``size`` how many a row makes."""

    cell: Cell
    more: int
    extra: int
    work: Work
    size: Size


def sums(cell: Cell, times: Fraction, op: str) -> SplitSums | None:
    """The sums of an op, if their number is all in which the ranks differ from ``times`` one device's work; None otherwise."""
    one = sum((row.work for row in cell.one), ZERO)
    ranks = sum((row.work * count for count, row in cell.of_ranks()), ZERO)
    names = [name for name in COMPONENTS if getattr(ranks, name) != getattr(one, name) * times]

    def beyond(size: Size, times: Fraction) -> Fraction:
        return cell.together(size) - times * sum(map(size, cell.one))

    if names == ["accumulators"]:
        size, work = _accumulators, Work(accumulators=1)
    elif (
        op == SUMS
        and names == ["add"]
        and not beyond(_elements_read, times)
        and ranks.add - one.add * times == -beyond(_elements_made, times)
    ):
        size, work = _elements_made, Work(add=-1)
    else:
        return None
    more, extra = beyond(size, times), beyond(size, Fraction(1))
    return SplitSums(cell, int(more), int(extra), work, size) if cell.one and more.denominator == 1 else None


def why_cut(of: SplitSums, batches: int, in_parts: bool) -> dict[Cause, int]:
    """The causes of the additional sums, and how many each explains; empty if unknown. ``in_parts`` says that the ranks add
    gradients of micro-batches, and one device does not."""
    if of.more < 0:
        return {Cause.OWN_BATCH: of.more} if batches > 1 and of.extra >= 0 else {}
    if not in_parts:
        return {Cause.ADDED_BETWEEN_RANKS: of.more}
    found = _of_micro_batches(of)
    if sum(of.cell.ranks[index] for index, rows in of.cell.parts.items() if rows) == 1:
        found = Fraction(of.more)  # one rank alone has no other to share a sum with
    if found is None or found.denominator != 1:
        return {}
    return {Cause.MICRO_BATCHES: int(found), Cause.ADDED_BETWEEN_RANKS: of.more - int(found)}


def _of_micro_batches(of: SplitSums) -> Fraction | None:
    """How many more there are because ranks cut their batch: of a rank that makes a weight's gradient in m calls for each of one
    device's, all but one of m. None if the ranks' calls are not one device's, one by one."""
    more = Fraction(0)
    for index, rows in of.cell.parts.items():
        if not rows:
            continue
        if len(rows) != len(of.cell.one):
            return None
        for mine, theirs in zip(rows, of.cell.one, strict=True):
            often = Fraction(mine.calls, theirs.calls)
            if often.denominator != 1 or not _within(mine, theirs):
                return None
            if theirs.phase == WEIGHT_GRADIENT:
                more += of.cell.ranks[index] * of.size(mine) * (1 - 1 / often)
    return more


def _within(mine: TraceRow, theirs: TraceRow) -> bool:
    """Whether no dimension is longer than one device's."""
    pairs = differing_sizes(shapes_of(mine), shapes_of(theirs))
    return pairs is not None and all(a <= b for a, b in pairs)


def _accumulators(row: TraceRow) -> int:
    return row.work.accumulators


def _elements_read(row: TraceRow) -> int:
    return _elements(row.inputs) * row.calls


def _elements_made(row: TraceRow) -> int:
    return _elements(row.outputs) * row.calls


def _elements(tensors: Sequence[Tensor]) -> int:
    return sum(prod(int(size or 0) for size in tensor.shape or ()) for tensor in tensors)


SCALING = "aten.mul"
MEANS = "aten.mul of what ranks add"
"""An op name that tells these from the other products of a layer."""
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
    return not cell.one and all(_scales(row, tensors) for _, row in cell.of_ranks())


def _scales(row: TraceRow, tensors: frozenset[Reduced]) -> bool:
    return row.op == SCALING and (row.layer, phase_of(row), row.outputs) in tensors
