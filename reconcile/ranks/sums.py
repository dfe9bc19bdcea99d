"""The statement from the sum of all ranks to one device, from the traces of both alone.

Work is compared by layer and phase, and where that does not come out, by op as well.  With B batches that ranks read, each of
them ``share`` of what the one device reads, the ranks have B x share times its work (own-batch).  What is left is

- recomputed: work of the recomputation, which the one device has none of;
- replicated: each rank that takes part does the whole of it, as one device does with as many tokens, while the ranks share
  another op of the batch, or several ranks update the same part of each weight;
- padded-shard: the parts of one dimension, added over the ranks, are more than the dimension;
- added-between-ranks: operators by which ranks reduce a tensor, and dot products that they cut for it;
- micro-batches: what a step does once for each part of its batch, and to add their gradients (micro.py);
- blocks-skipped, attention-in-blocks: what a ring leaves out of attention, and what it does to merge its blocks (blocks.py).

What none of these explains is the residual, by layer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import cast

from ..core.causes import Cause
from ..core.conventions import Convention
from ..core.records import BACKWARD, FORWARD, INPUT_GRADIENT, LOSS, RECOMPUTATION, WEIGHT_GRADIENT, Tensor
from ..core.results import Adjustment, Residual, Statement, TraceResult, TraceRow
from ..core.work import COMPONENTS, ZERO, Work
from ..engine.statements import close
from ..work.collectives import is_collective
from . import micro
from .blocks import in_blocks
from .moved import Cell, Place, copied, matched
from .padding import padding

SUM = "sum of ranks"
ONE = "one device"
SUMS, SCALING = "aten.sum", "aten.mul"
ELSEWHERE = "(layers of one side)"
"""Layers that only one side names, such as those of a stage that counts its own from 0: they are compared by op."""
NOTHING_SHARED = (
    "each rank does the whole of it and shares no other work of the batch, "
    "so nothing shows whether all of them read one batch"
)
"""Why whole layers on each rank are left unexplained."""
_GRADIENTS = {INPUT_GRADIENT: BACKWARD, WEIGHT_GRADIENT: BACKWARD}
_OF_BATCHES = (FORWARD, LOSS, BACKWARD, RECOMPUTATION)
"""Phases whose work grows with the batch. An optimizer's does not."""


@dataclass(frozen=True, slots=True)
class Part:
    """Ranks that do equal work: how many there are, and the trace of one."""

    count: int
    trace: TraceResult


class Sum:
    """``batches`` is how many batches the ranks read, and ``share`` how much of the one device's batch each of these is.
    ``one_batch`` says that the program itself shows one batch of all ranks, whatever they share."""

    def __init__(
        self, parts: Sequence[Part], one: TraceResult, batches: int, share: Fraction, convention: Convention,
        *, one_batch: bool = False,
    ) -> None:  # fmt: skip
        self.parts, self.one, self.batches, self.share = parts, one, batches, share
        self.flops = convention.flops
        self.convention, self.one_batch = convention, one_batch
        self._lines: list[Adjustment] = []
        self._residuals: list[Residual] = []

    def statement(self) -> Statement:
        """From the sum to the one device: by layer, or by op where the ranks name layers otherwise than the one device does."""
        by_layer = self._statement(frozenset())
        if not by_layer.residuals:
            return by_layer
        names = frozenset(row.layer for row in self.one.rows)
        by_op = self._statement(names)
        return by_layer if by_op.residuals else by_op

    def _statement(self, apart: frozenset[str]) -> Statement:
        """Without the layers ``apart``, which are compared by op."""
        self._lines, self._residuals = [], []
        both = {r.layer for part in self.parts for r in part.trace.rows} & {r.layer for r in self.one.rows} - apart
        cells = self._cells(self._all(), lambda row: (row.layer if row.layer in both else ELSEWHERE, _phase(row), ""))
        left = [each for place, cell in cells.items() for each in self._book(place, cell)]
        self._match(left)
        total = sum(part.count * self._work(part.trace.rows) for part in self.parts)
        return close(SUM, ONE, (total, self._work(self.one.rows)), self._lines, self._residuals)

    @cached_property
    def _counts(self) -> list[int]:
        """How many ranks each part has."""
        return [part.count for part in self.parts]

    def _times(self, place: Place) -> Fraction:
        """How many times the one device's work the ranks' batches are at this place."""
        return self.batches * self.share if place[1] in _OF_BATCHES else Fraction(1)

    def _all(self) -> Cell:
        return Cell({i: list(part.trace.rows) for i, part in enumerate(self.parts)}, list(self.one.rows))

    def _cells(self, whole: Cell, place: Callable[[TraceRow], Place]) -> dict[Place, Cell]:
        return cast("dict[Place, Cell]", whole.split(place))

    def _work(self, rows: Iterable[TraceRow]) -> int:
        return sum(self.flops(row.work) for row in rows)

    def _more(self, place: Place, cell: Cell) -> tuple[int, int]:
        """What the ranks' own batches add to the one device's work, and what the ranks have beyond both."""
        alone = self._work(cell.one)
        wanted = alone * self.batches * self.share if place[1] in _OF_BATCHES else Fraction(alone)
        if wanted.denominator != 1:  # no whole number of batches: nothing is booked to them
            wanted = Fraction(alone)
        summed = sum(self.parts[index].count * self._work(rows) for index, rows in cell.parts.items())
        return int(wanted) - alone, summed - int(wanted)

    def _book(self, place: Place, cell: Cell) -> list[tuple[Place, Cell]]:
        """Book what the place alone explains, and give back the ops that it does not."""
        own, beyond = self._more(place, cell)
        self._line(Cause.OWN_BATCH, place, -own)
        found = in_blocks(cell, place[1], self._counts, self._times(place)) if beyond else None
        if found is not None:
            (_, more), skipped = self._more(place, found.ops), self.flops(found.skipped)
            self._line(Cause.BLOCKS_SKIPPED, place, skipped)
            self._line(Cause.ATTENTION_IN_BLOCKS, place, -more - skipped)
            cell, beyond = found.cell, beyond - more
        if place[0] != ELSEWHERE:  # what one layer does more than another does less is no explanation
            cause = self._cause(place, cell, beyond) if beyond else None
            if cause is not None:
                self._line(cause, place, -beyond)
            if cause is not None or not beyond:
                return []
        left = []
        for inner, ops in self._cells(cell, lambda row: (place[0], place[1], self._op(row))).items():
            _, rest = self._more(inner, ops)
            cause = self._cause(inner, ops, rest) if rest else None
            if cause is not None:
                self._line(cause, inner, -rest)
            elif rest and place[0] == ELSEWHERE:
                self._residuals.append(Residual(place[0], -rest, self._why(inner, rest)))
            elif rest:
                left.append((inner, ops))
        return left

    def _match(self, left: Sequence[tuple[Place, Cell]]) -> None:
        """Book what the ranks do the whole of in another place than one device, and what nothing explains."""
        moved = micro.elsewhere(left, self._counts) if self._added else set()
        left = [(place, cell) for place, cell in left if place[1:] not in moved]
        booked, rest = matched(left, self._counts, lambda place, cell: self._more(place, cell)[1], self._if_whole)
        for place, beyond in booked:
            self._line(Cause.REPLICATED, place, -beyond)
        layers: dict[tuple[str, str], int] = defaultdict(int)
        for (layer, phase, _), beyond in rest:
            layers[layer, phase] += beyond
        for (layer, phase), beyond in layers.items():
            if beyond:
                self._residuals.append(Residual(layer, -beyond, self._why((layer, phase, ""), beyond)))
            else:  # ops of a layer that offset each other are not explained by that
                self._residuals += [
                    Residual(place[0], -each, self._why(place, each))
                    for place, each in rest
                    if place[:2] == (layer, phase)
                ]

    def _why(self, place: Place, left: int) -> str:
        if not self._sharing and place[1] in _OF_BATCHES and left > 0:
            return f"{place[0] or 'the model'}, {place[1]}: {NOTHING_SHARED}"
        more = "more" if left > 0 else "less"
        where = ", ".join(filter(None, (place[0] or "the model", *place[1:])))
        return f"{where}: the ranks together do {more} than one device, and no cause explains it"

    def _line(self, cause: Cause, place: Place, amount: int) -> None:
        if amount:
            self._lines.append(Adjustment(cause, place[0], place[2] or place[1], "", amount, ()))

    def _cause(self, place: Place, cell: Cell, beyond: int) -> Cause | None:
        if all(is_collective(row.op) for rows in cell.parts.values() for row in rows) and not self._work(cell.one):
            return Cause.ADDED_BETWEEN_RANKS
        if self._averaged(cell):
            return Cause.ADDED_BETWEEN_RANKS
        if place[1] == RECOMPUTATION and not self._work(cell.one) and beyond > 0:
            return Cause.RECOMPUTED
        if beyond > 0 and (self._replicated(place, cell) or self._copied(place, cell, beyond)):
            return Cause.REPLICATED
        if place[2] and (self._cut(place, cell) or self._cut_sum(place, cell, beyond)):
            return Cause.MICRO_BATCHES if self._added and self._by_one(cell) else Cause.ADDED_BETWEEN_RANKS
        if place[2] and self._added and beyond > 0 and self._of_parts(place, cell):
            return Cause.MICRO_BATCHES
        padded = padding(cell, self._counts, self.batches, lambda row: self.flops(row.work) * self._times(place))
        return Cause.PADDED_SHARD if padded == beyond > 0 else None

    @cached_property
    def _added(self) -> frozenset[tuple[Tensor, ...]]:
        """The gradients that ranks add, of several micro-batches, and one device does not."""
        return micro.added([part.trace.rows for part in self.parts], self.one.rows)

    def _op(self, row: TraceRow) -> str:
        return micro.ADDED if self._added and micro.adds_gradients(row) else row.op

    def _of_parts(self, place: Place, cell: Cell) -> bool:
        """Whether these ops are what a step with micro-batches does for each of them, or to put them together."""
        alone = self._by_one(cell)
        return place[2] == micro.ADDED or micro.scaled(cell, self._added) or (alone and micro.each(cell))

    def _by_one(self, cell: Cell) -> bool:
        """Whether one rank alone does these ops."""
        return sum(self.parts[index].count for index, rows in cell.parts.items() if rows) == 1

    def _averaged(self, cell: Cell) -> bool:
        """Whether ranks scale the very tensors that they add, so that these are means; one device does no such thing."""
        rows = [row for rows in cell.parts.values() for row in rows]
        return not cell.one and all(row.op == SCALING and (_at(row), row.outputs) in self._reduced for row in rows)

    @cached_property
    def _reduced(self) -> set[tuple[Place, tuple[Tensor, ...]]]:
        """The tensors that collectives take, with their layers and phases."""
        return {
            (_at(row), (t,))
            for part in self.parts
            for row in part.trace.rows
            if is_collective(row.op)
            for t in row.inputs
        }

    def _cut(self, place: Place, cell: Cell) -> bool:
        """Whether ranks cut dot products: together they do one device's multiply-adds for more sums, which they add up later."""
        times = self._times(place)
        one = sum((row.work for row in cell.one), ZERO)
        ranks = sum((row.work * self.parts[index].count for index, rows in cell.parts.items() for row in rows), ZERO)
        names = [name for name in COMPONENTS if getattr(ranks, name) != getattr(one, name) * times]
        return names == ["accumulators"] and ranks.accumulators > one.accumulators * times

    def _cut_sum(self, place: Place, cell: Cell, beyond: int) -> bool:
        """Whether ranks cut sums: together they add as many elements to more sums, each of which saves one addition."""
        if place[2] != SUMS or not cell.one:
            return False
        times = self._times(place)
        read = made = Fraction(0)
        both = [(row, Fraction(self.parts[index].count)) for index, rows in cell.parts.items() for row in rows]
        both += [(row, -times) for row in cell.one]
        for row, count in both:
            read += _elements(row.inputs) * row.calls * count
            made += _elements(row.outputs) * row.calls * count
        weight = self.convention.flops(Work(add=1))
        return not read and made > 0 and -made * weight == beyond

    def _replicated(self, place: Place, cell: Cell) -> bool:
        return self._whole_on_each(place, cell) and (self._sharing or place[1] not in _OF_BATCHES)

    def _copied(self, place: Place, cell: Cell, beyond: int) -> bool:
        """Whether ranks share weights, and several of them have the same part, as with HSDP. What a part of a batch is done by
        twice may be of two batches: this says nothing of that, unless the program shows one batch."""
        world, whole = sum(self._counts), self._work(cell.one)
        apart = place[1] in _OF_BATCHES and not self.one_batch
        if apart or not whole or beyond % whole or world % (beyond // whole + 1):
            return False
        return copied(cell, self._counts, world // (beyond // whole + 1))

    def _if_whole(self, place: Place, rows: Sequence[TraceRow]) -> int:
        """What the ranks do beyond one device if each of them does the whole of these rows; -1 where they could be of several
        batches."""
        if rows and not self._sharing and place[1] in _OF_BATCHES:
            return -1
        every = Cell({index: list(rows) for index in range(len(self.parts))}, list(rows))
        return self._more(place, every)[1]

    def _whole_on_each(self, place: Place, cell: Cell) -> bool:
        """Whether each rank that takes part does as much as one device does with the tokens that this rank reads."""
        whole = self._work(cell.one) * (self.share if place[1] in _OF_BATCHES else 1)
        taking = [index for index, rows in cell.parts.items() if self._work(rows)]
        return bool(whole) and all(self._work(cell.parts[index]) == whole for index in taking)

    @cached_property
    def _sharing(self) -> bool:
        """Whether the ranks share some op of a batch: each of them does less than the whole of it. Without that, ranks that do
        the whole of a layer each may read one batch or several."""
        if self.one_batch:
            return True
        cells = self._cells(self._all(), lambda row: (row.layer, _phase(row), row.op))
        for place, cell in cells.items():
            whole = self._work(cell.one) * self.share
            done = [work for rows in cell.parts.values() if (work := self._work(rows))]
            if place[1] in _OF_BATCHES and done and max(done) < whole:
                return True
        return False


def _at(row: TraceRow) -> Place:
    return row.layer, _phase(row), ""


def _elements(tensors: Sequence[Tensor]) -> int:
    return sum(prod(int(size or 0) for size in tensor.shape or ()) for tensor in tensors)


def _phase(row: TraceRow) -> str:
    return _GRADIENTS.get(row.phase, row.phase)
