"""Context parallelism: what ring attention, which ranks compute block by block, leaves out and adds, by cause (for sums.py).

With a causal mask a ring of ranks computes no block of scores that the mask discards whole (torch/distributed/tensor/
experimental/_context_parallel/_attention.py, ``_is_causal_behavior``, 2.13): every product that the ranks leave out is one that
the mask discards.  A block has rows of its own in the softmax, and the blocks of a rank are merged by their log-sum-exps
(``_SDPAMerger._merge_one``).  In the backward pass a rank adds the gradients of its blocks
(``_templated_ring_attention_backward``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...core.records import BACKWARD, FORWARD
from ...core.results import TraceRow
from ...core.work import COMPONENTS, MASKED, ZERO, Work, prod
from ...work import attention
from .rank_calls import Cell

NAME = "aten._scaled_dot_product_"
GRADIENT = "_backward"
MERGES = {
    FORWARD: ("aten.sub", "aten.sigmoid", "aten.mul", "aten.log_sigmoid_forward"),
    BACKWARD: ("aten.add",),
}
"""The operators by which a rank merges its blocks."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """What attention in blocks explains: the Work of the scores that the mask discards and the ranks leave out, the ``ops``
    that are explained with it, and the ``cell`` without them."""

    skipped: Work
    ops: Cell
    cell: Cell


def in_blocks(cell: Cell, phase: str, times: Fraction) -> Blocks | None:
    """The attention of a layer, if ranks compute it in blocks; None if they do not, or if nothing proves it.

    ``times`` is how many times the one device's work the ranks' batches are.  The proof: the ranks have blocks of the one
    device's scores, each product that they leave out is one that its mask discards, and those that the mask keeps are as many on
    both sides.
    """
    if phase not in MERGES:
        return None
    by_op = cell.split(lambda row: row.op)
    attends = [rows for op, rows in by_op.items() if op.startswith(NAME)]
    whole = Cell.of(attends)
    left_out = -_beyond(whole, times, "mac")
    if left_out < 0 or left_out != -_beyond(whole, times, MASKED) or not _in_blocks(whole):
        return None
    score = _score(whole.one, phase)
    if score is None or left_out % score.mac:
        return None
    sizes = {size for rows in whole.parts.values() for row in rows for size in _shapes(row)}
    merging = [
        rows
        for op, rows in by_op.items()
        if op in MERGES[phase] and _merges(rows, times, lambda row: set(_shapes(row)) <= _with_sums(sizes))
    ]
    explained = [*attends, *merging]
    rest = [rows for rows in by_op.values() if not any(rows is each for each in explained)]
    return Blocks(score * int(left_out // score.mac), Cell.of(explained), Cell.of(rest))


def _in_blocks(cell: Cell) -> bool:
    """Whether no op of the ranks has as many queries and keys as one of the one device does."""
    whole = [_scores(row) for row in cell.one]
    parts = [_scores(row) for rows in cell.parts.values() for row in rows]
    return bool(whole and parts) and max(parts) < min(whole)


def _scores(row: TraceRow) -> int:
    query, key, _ = _attention_shapes(row)
    return query[-2] * key[-2]


def _attention_shapes(row: TraceRow) -> list[tuple[int, ...]]:
    """The shapes of query, key and value; a gradient stands before them."""
    first = 1 if row.op.endswith(GRADIENT) else 0
    return list(_shapes(row))[first : first + 3]


def _score(one: Sequence[TraceRow], phase: str) -> Work | None:
    """The work of one more score of these ops of one device; None if their work is not that of the formulas of attention."""
    groups: dict[object, list[TraceRow]] = {}  # a gradient stands in several rows, each with a part of its work
    for row in one:
        groups.setdefault((row.op, row.inputs), []).append(row)
    found: set[tuple[int, ...]] = set()
    for rows in groups.values():
        shapes, causal = _attention_shapes(rows[0]), any(row.work.masked for row in rows)
        if sum((row.work for row in rows), ZERO) != _attention(shapes, phase, causal) * rows[0].calls:
            return None
        widths = [shape[-1] for shape in shapes]

        def small(queries: int, keys: int, widths: Sequence[int] = widths, causal: bool = causal) -> Work:
            """Of as many queries and keys, one head of one sequence."""
            sizes = zip((queries, keys, keys), widths, strict=True)
            return _attention([(1, 1, size, width) for size, width in sizes], phase, causal)

        more = small(2, 2) - small(1, 2) - small(2, 1) + small(1, 1)
        found.add(tuple(more))
    return Work(*found.pop()) if len(found) == 1 else None


def _attention(shapes: Sequence[tuple[int, ...]], phase: str, causal: bool) -> Work:
    query, key, value = shapes
    if phase == FORWARD:
        return attention.sdpa(query, key, value, masked=causal)
    return sum(attention.sdpa_gradient(query, key, value).values(), ZERO)


def _merges(cell: Cell, times: Fraction, of_blocks: Callable[[TraceRow], bool]) -> bool:
    """Whether what the ranks do beyond one device here is no more than these operators do on blocks."""
    beyond = [_beyond(cell, times, name) for name in COMPONENTS]
    mine = Cell({part: [row for row in rows if of_blocks(row)] for part, rows in cell.parts.items()}, [], cell.ranks)
    most = [_beyond(mine, times, name) for name in COMPONENTS]
    return any(beyond) and all(0 <= more <= some for more, some in zip(beyond, most, strict=True))


def _beyond(cell: Cell, times: Fraction, name: str) -> Fraction:
    """What the ranks do beyond one device, in this component of Work."""
    alone: int = sum(getattr(row.work, name) for row in cell.one)
    return cell.together(lambda row: int(getattr(row.work, name))) - times * alone


def _shapes(row: TraceRow) -> Iterator[tuple[int, ...]]:
    return (tuple(int(size or 0) for size in t.shape or ()) for t in (*row.inputs, *row.outputs))


def _with_sums(shapes: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Those of blocks, and of the log-sum-exps of their rows."""
    found = {shape for shape in shapes if prod(shape)}
    return found | {(*shape[:-1], 1) for shape in found}
