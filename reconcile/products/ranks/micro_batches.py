"""Micro-batches: calls that ranks run part by part, how often they do, and what they add to put the parts together (sums.py).

A pipeline's schedule runs each micro-batch by itself.  An op that several ranks run so differs from one device's in two ways: it
runs on several ranks, and once for each part.  Shapes and calls tell both apart: of p equal parts of one dimension, p calls for
each of one device's (``count_ranks``, ``times_done``, ``covered_calls``), and the mean of a loss ends in a division for each.
The gradients of a weight are added then (autograd's AccumulateGrad: ``added_gradients``) and scaled by their number
(torch/distributed/pipelining/stage.py, ``scale_grads``: ``are_gradients_scaled``).  ``ran_before`` checks that ranks recompute
only calls of their own forward pass; ``readers`` says how many ranks of a stage read one batch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from fractions import Fraction

from ...core.records import WEIGHT_GRADIENT, Tensor
from ...core.results import TraceRow
from .rank_calls import Cell, Place, Shapes, is_kept_part, parts_of, shapes_of

Flops = Callable[[TraceRow], int]


def count_ranks(cell: Cell, share: Fraction) -> int | None:
    """How many ranks do the one device's calls, each for its whole ``share`` of the batch, part by part; None if the calls of
    some rank are others."""
    taking = 0
    for index, rows in cell.parts.items():
        if not rows:
            continue
        if len(rows) != len(cell.one):
            return None
        for mine, theirs in zip(rows, cell.one, strict=True):
            parts = parts_of(shapes_of(mine), shapes_of(theirs))
            if mine.op != theirs.op or not parts or Fraction(mine.calls, parts) != share * theirs.calls:
                return None
        taking += cell.ranks[index]
    return taking or None


def ran_before(cell: Cell, forward: Sequence[Mapping[tuple[str, str, Shapes], int]]) -> bool:
    """Whether each rank recomputes only calls of its own forward pass: none more often than it ran there, or (a checkpoint in
    another one) all by the same multiple. ``forward`` are each part's calls there."""
    for index, rows in cell.parts.items():
        often = {Fraction(row.calls, forward[index].get(call_of(row), 0) or 1) for row in rows}
        if any(call_of(row) not in forward[index] for row in rows) or (max(often, default=0) > 1 and len(often) > 1):
            return False
    return True


def call_of(row: TraceRow) -> tuple[str, str, Shapes]:
    """Its layer, its op, and the shapes of its tensors."""
    return row.layer, row.op, shapes_of(row)


def times_done(
    cells: Iterable[tuple[Place, Cell]],
    times: Callable[[Place], Fraction],
    work: Flops,
    batches: Container[str],
) -> dict[tuple[str, str], dict[Shapes, int]]:
    """How often the ranks do each call of one device, in whatever layer, by phase and op, and by the shapes of the call.

    Autograd adds the gradients of a stage's input in the module that reads it first, and not in the one around it.  ``times`` is
    how many times one device's work the ranks' batches are, and ``batches`` are the phases of these.  A phase and op is left out
    where some calls are no such ones.
    """
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for (_, phase, op), cell in cells:
        groups[phase, op].append(cell)
    found: dict[tuple[str, str], dict[Shapes, int]] = {}
    for key, group in groups.items():
        cell, each = Cell.of(group), times(("", *key))
        done = {shapes: calls / each for shapes, calls in (covered_calls(cell, key[0] not in batches) or {}).items()}
        alone = sum(done[shapes_of(row)] * work(row) for row in cell.one) if done else 0
        if (
            done
            and cell.together(work) == each * alone
            and all(often.denominator == 1 <= often for often in done.values())
        ):
            found[key] = {shapes: int(often) for shapes, often in done.items()}
    return found


def covered_calls(cell: Cell, once: bool) -> dict[Shapes, Fraction] | None:
    """By shapes of one device's calls, how often the ranks do them, whole or part by part: None if some call of theirs is a part
    of none or of several. ``once`` says that a rank does its part in one call, so that there are as many parts as some ranks."""
    alone, done = Counter[Shapes](), defaultdict[Shapes, Fraction](Fraction)
    for row in cell.one:
        alone[shapes_of(row)] += row.calls
    for count, row in cell.of_ranks():
        mine = shapes_of(row)
        cut = {shapes: parts for shapes in alone if (parts := parts_of(mine, shapes))}
        if once:
            cut = {mine: 1} if mine in cut else {of: parts for of, parts in cut.items() if sum(cell.ranks) % parts == 0}
        if len(cut) != 1:
            return None
        ((like, parts),) = cut.items()
        done[like] += Fraction(row.calls * count, parts)
    return {shapes: done[shapes] / calls for shapes, calls in alone.items()}


def readers(stages: Iterable[tuple[int, frozenset[str]]], batches: int) -> int:
    """How many ranks of each stage read one batch, of ranks and the layers that they work for; 0 where stages differ in it."""
    ranks: dict[frozenset[str], int] = defaultdict(int)
    for count, layers in stages:
        ranks[layers] += count
    sizes = set(ranks.values())
    size = sizes.pop()
    return 0 if sizes or size % batches else size // batches


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
    shapes = [tuple(tensor.shape for tensor in gradient) for gradient in gradients]
    return not cell.one and all(
        row.op in _SCALINGS and any(is_kept_part(tuple(t.shape for t in row.outputs), whole) for whole in shapes)
        for _, row in cell.of_ranks()
    )
