"""The statement from the sum of all ranks to one device, from the traces of both alone.

Work is compared by layer and phase, and where that does not come out, by op as well.  With B batches that ranks read, each of
them ``share`` of what the one device reads, the ranks have B x share times its work (own-batch).  What is left is

- recomputed: work of the recomputation, which the one device has none of, and which the rank did in its forward pass;
- replicated: each rank that takes part does the whole of it, as one device does with as many tokens, while the ranks share
  another op of the batch, or several ranks update the same part of each weight;
- expert-capacity: rows of places that no token chose, or tokens without a place (capacity.py);
- padded-shard: the parts of one dimension, added over the ranks, are more than the dimension;
- added-between-ranks: operators by which ranks reduce a tensor, means of it, and sums that they cut for it (split_reductions.py);
- micro-batches: what a step does once for each part of its batch and to add their gradients (micro_batches.py);
- blocks-skipped, attention-in-blocks: what a ring leaves out of attention, and what it does to merge its blocks (blocks.py).

What none of these explains is the residual, by layer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...core.causes import Cause
from ...core.conventions import Convention
from ...core.records import BACKWARD, FORWARD, LOSS, RECOMPUTATION, Tensor
from ...core.results import Adjustment, Residual, Statement, TraceResult, TraceRow
from ...engine.statements import close_statement
from . import capacity, micro_batches, split_reductions
from .blocks import in_blocks
from .rank_calls import Cell, Place, Shapes, alike, are_parts_copied, match_cells, padding_flops, phase_of, shapes_of
from .sent_bytes import is_collective

SUM = "sum of ranks"
ONE = "one device"
ELSEWHERE = "(layers of one side)"
"""Layers that only one side names, such as those of a stage that counts its own from 0: they are compared by op."""
NOTHING_SHARED = (
    "each rank does the whole of it and shares no other work of the batch, "
    "so nothing shows whether all of them read one batch"
)
"""Why whole layers on each rank are left unexplained."""
_OF_BATCHES = (FORWARD, LOSS, BACKWARD, RECOMPUTATION)
"""Phases whose work grows with the batch. An optimizer's does not."""


@dataclass(frozen=True, slots=True)
class Part:
    """Ranks that do equal work: how many there are, and the trace of one."""

    count: int
    trace: TraceResult


class Sum:
    """All ranks beside one device; ``statement`` compares them. ``batches`` is how many batches the ranks read, and ``share`` how
    much of the one device's batch each of these is. ``one_batch`` says that the program itself shows one batch of all ranks."""

    def __init__(
        self, parts: Sequence[Part], one: TraceResult, batches: int, share: Fraction, convention: Convention,
        *, one_batch: bool = False,
    ) -> None:  # fmt: skip
        self.parts, self.one, self.batches, self.share = parts, one, batches, share
        self.flops, self.convention, self.one_batch = convention.flops, convention, one_batch
        self._lines: list[Adjustment] = []
        self._residuals: list[Residual] = []

    def statement(self) -> Statement:
        """From the sum to the one device: by layer, by the lists of layers that the ranks number otherwise, or by op."""
        names, ranks = {r.layer for r in self.one.rows}, {r.layer for part in self.parts for r in part.trace.rows}
        own = {name: name for name in names & ranks}
        tried = [self._statement(own)]
        for layers in (own, alike(names, ranks), {}):
            if layers != own:
                tried.append(self._statement(layers))
            if not tried[-1].residuals:
                return tried[-1]
        return tried[max(0, len(tried) - 2)]

    def _statement(self, layers: Mapping[str, str]) -> Statement:
        """By the names that ``layers`` have on both sides. All others are compared by op."""
        self._lines, self._residuals = [], []
        cells = self._all().split(lambda row: (layers.get(row.layer, ELSEWHERE), phase_of(row), ""))
        left = [each for place, cell in cells.items() for each in self._book(place, cell)]
        self._match(left)
        total = sum(part.count * self._work(part.trace.rows) for part in self.parts)
        return close_statement(SUM, ONE, (total, self._work(self.one.rows)), self._lines, self._residuals)

    @cached_property
    def _counts(self) -> list[int]:
        """How many ranks each part has."""
        return [part.count for part in self.parts]

    def _times(self, place: Place) -> Fraction:
        """How many times the one device's work the ranks' batches are at this place."""
        return self.batches * self.share if place[1] in _OF_BATCHES else Fraction(1)

    @cached_property
    def _stages(self) -> list[tuple[int, frozenset[str]]]:
        """How many ranks each part has, and the layers of a batch that it works for."""
        return [
            (
                part.count,
                frozenset(row.layer for row in part.trace.rows if phase_of(row) in _OF_BATCHES and any(row.work)),
            )
            for part in self.parts
        ]

    def _all(self) -> Cell:
        return Cell({i: list(part.trace.rows) for i, part in enumerate(self.parts)}, list(self.one.rows), self._counts)

    def _work(self, rows: Iterable[TraceRow]) -> int:
        return sum(self.flops(row.work) for row in rows)

    def _more(self, place: Place, cell: Cell) -> tuple[int, int]:
        """What the ranks' own batches add to the one device's work, and what the ranks have beyond both."""
        alone = self._work(cell.one)
        wanted = alone * self.batches * self.share if place[1] in _OF_BATCHES else Fraction(alone)
        if wanted.denominator != 1:  # no whole number of batches: nothing is booked to them
            wanted = Fraction(alone)
        return int(wanted) - alone, cell.together(lambda row: self.flops(row.work)) - int(wanted)

    def _book(self, place: Place, cell: Cell) -> list[tuple[Place, Cell]]:
        """Book what the place alone explains, and give back the ops that it does not."""
        own, beyond = self._more(place, cell)
        self._line(Cause.OWN_BATCH, place, -own)
        found = in_blocks(cell, place[1], self._times(place)) if beyond else None
        if found is not None:
            (_, more), skipped = self._more(place, found.ops), self.flops(found.skipped)
            self._line(Cause.BLOCKS_SKIPPED, place, skipped)
            self._line(Cause.ATTENTION_IN_BLOCKS, place, -more - skipped)
            cell, beyond = found.cell, beyond - more
        places = self._places if place[1] in _OF_BATCHES else capacity.NONE
        rows, cell = capacity.separate_places(cell, self._times(place), places)
        self._line(Cause.EXPERT_CAPACITY, place, -self.flops(rows))
        beyond -= self.flops(rows)
        # What one layer does more than another does less is no explanation.
        if place[0] != ELSEWHERE and self._explain(place, cell, beyond):
            return []
        left = []
        for inner, ops in cell.split(lambda row: (place[0], place[1], self._op(row))).items():
            _, rest = self._more(inner, ops)
            if self._explain(inner, ops, rest):
                continue
            left.append((inner, ops))
        return left

    @cached_property
    def _places(self) -> capacity.Places:
        return capacity.places_of(self._all(), self.batches * self.share)

    def _explain(self, place: Place, cell: Cell, beyond: int) -> bool:
        """Book what the ranks do beyond one device and their own batches, if all of it has causes."""
        causes = self._causes(place, cell, beyond) if beyond else {}
        for cause, amount in causes.items():
            self._line(cause, place, -amount)
        return not beyond or bool(causes)

    def _match(self, left: Sequence[tuple[Place, Cell]]) -> None:
        """Book what the ranks do the whole of in another place than one device, and what nothing explains."""
        often = micro_batches.times_done(left, self._times, lambda row: self.flops(row.work), _OF_BATCHES)
        known = {key: times for key, times in often.items() if self._may(key[0], times)}
        for place, cell in left:
            copies = known.get(place[1:], {})
            more = sum((copies[shapes_of(row)] - 1) * self.flops(row.work) for row in cell.one) if copies else 0
            self._line(Cause.REPLICATED, place, -int(more * self._times(place)))
        left = [(place, cell) for place, cell in left if place[1:] not in known]
        booked, rest = match_cells(left, lambda place, cell: self._more(place, cell)[1], self._if_whole)
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

    def _may(self, phase: str, often: Mapping[Shapes, int]) -> bool:
        """Whether ranks may do calls this often: those of a batch once, or as often as ranks read it, and those of a weight as
        often as ranks have the same part of it."""
        if phase not in _OF_BATCHES:
            return all(sum(self._counts) % times == 0 for times in often.values())
        alike = set(often.values())
        return bool(self._added_gradients) and (
            alike == {1} or (self._is_sharing and alike == {micro_batches.readers(self._stages, self.batches)})
        )

    def _why(self, place: Place, left: int) -> str:
        if not self._is_sharing and place[1] in _OF_BATCHES and left > 0:
            return f"{place[0] or 'the model'}, {place[1]}: {NOTHING_SHARED}"
        more = "more" if left > 0 else "less"
        where = ", ".join(filter(None, (place[0] or "the model", *place[1:])))
        return f"{where}: the ranks together do {more} than one device, and no cause explains it"

    def _line(self, cause: Cause, place: Place, amount: int) -> None:
        if amount:
            self._lines.append(Adjustment(cause, place[0], place[2] or place[1], "", amount, ()))

    def _causes(self, place: Place, cell: Cell, beyond: int) -> dict[Cause, int]:
        if all(is_collective(row.op) for _, row in cell.of_ranks()) and not self._work(cell.one):
            return {Cause.ADDED_BETWEEN_RANKS: beyond}
        if split_reductions.is_averaged(cell, self._reduced_tensors):
            return {Cause.ADDED_BETWEEN_RANKS: beyond}
        if place[1] == RECOMPUTATION and not self._work(cell.one) and micro_batches.ran_before(cell, self._forward):
            return {Cause.RECOMPUTED: beyond}
        if beyond > 0 and (self._is_replicated(place, cell) or self._is_copied(place, cell, beyond)):
            return {Cause.REPLICATED: beyond}
        if place[2] and (found := self._explain_cut(place, cell, beyond) or self._in_parts(place, cell, beyond)):
            return found
        rate, chosen = self._times(place), capacity.choices(self.one.rows)
        padded = padding_flops(cell, self.batches, lambda row: self.flops(row.work) * rate, chosen)
        return {Cause.PADDED_SHARD: beyond} if padded == beyond > 0 else {}

    @cached_property
    def _added_gradients(self) -> frozenset[tuple[Tensor, ...]]:
        """The gradients that ranks add, of several micro-batches, and one device does not."""
        return micro_batches.added_gradients([part.trace.rows for part in self.parts], self.one.rows)

    def _op(self, row: TraceRow) -> str:
        return (
            micro_batches.ADDED
            if self._added_gradients and micro_batches.adds_gradients(row)
            else split_reductions.name_op(row, self._reduced_tensors)
        )

    def _in_parts(self, place: Place, cell: Cell, beyond: int) -> dict[Cause, int]:
        """What a step with micro-batches does for each of them, or to put them together, on one rank or on several."""
        if not self._added_gradients:
            return {}
        adds = place[2] == micro_batches.ADDED and micro_batches.fewer_than_made(
            cell, [part.trace.rows for part in self.parts]
        )
        if beyond > 0 and (adds or micro_batches.are_gradients_scaled(cell, self._added_gradients)):
            return {Cause.MICRO_BATCHES: beyond}
        times, share = self._times(place), self.share if place[1] in _OF_BATCHES else Fraction(1)
        ranks = micro_batches.count_ranks(cell, share)
        if ranks is None or ranks * share % times:
            return {}
        copies = (ranks * share - times) * self._work(cell.one)
        if copies.denominator != 1 or (copies and not self._is_sharing):
            return {}
        return {Cause.REPLICATED: int(copies), Cause.MICRO_BATCHES: beyond - int(copies)}

    @cached_property
    def _forward(self) -> list[Counter[tuple[str, str, Shapes]]]:
        """How often each part's calls run in its forward pass."""
        found = [Counter[tuple[str, str, Shapes]]() for _ in self.parts]
        for calls, part in zip(found, self.parts, strict=True):
            for row in part.trace.rows:
                calls[micro_batches.call_of(row)] += row.calls * (row.phase == FORWARD)
        return [+calls for calls in found]

    @cached_property
    def _reduced_tensors(self) -> frozenset[split_reductions.Reduced]:
        return split_reductions.reduced_tensors(row for part in self.parts for row in part.trace.rows)

    def _explain_cut(self, place: Place, cell: Cell, beyond: int) -> dict[Cause, int]:
        found = split_reductions.sums(cell, self._times(place), place[2])
        if found is None:
            return {}
        causes = split_reductions.why_cut(found, self.batches, bool(self._added_gradients))
        weight = self.flops(found.work)
        return {cause: amount * weight for cause, amount in causes.items()} if found.more * weight == beyond else {}

    def _is_replicated(self, place: Place, cell: Cell) -> bool:
        return self._whole_on_each(place, cell) and (self._is_sharing or place[1] not in _OF_BATCHES)

    def _is_copied(self, place: Place, cell: Cell, beyond: int) -> bool:
        """Whether ranks share weights, and several of them have the same part, as with HSDP. What a part of a batch is done by
        twice may be of two batches: this says nothing of that, unless the program shows one batch."""
        world, whole = sum(self._counts), self._work(cell.one)
        apart = place[1] in _OF_BATCHES and not self.one_batch
        if apart or not whole or beyond % whole or world % (beyond // whole + 1):
            return False
        return are_parts_copied(cell, world // (beyond // whole + 1))

    def _if_whole(self, place: Place, rows: Sequence[TraceRow]) -> int:
        """What the ranks do beyond one device if each of them does the whole of these rows; -1 where they could be of several
        batches."""
        if rows and not self._is_sharing and place[1] in _OF_BATCHES:
            return -1
        every = Cell({index: list(rows) for index in range(len(self.parts))}, list(rows), self._counts)
        return self._more(place, every)[1]

    def _whole_on_each(self, place: Place, cell: Cell) -> bool:
        """Whether each rank that takes part does as much as one device does with the tokens that this rank reads."""
        whole = self._work(cell.one) * (self.share if place[1] in _OF_BATCHES else 1)
        taking = [index for index, rows in cell.parts.items() if self._work(rows)]
        return bool(whole) and all(self._work(cell.parts[index]) == whole for index in taking)

    @cached_property
    def _is_sharing(self) -> bool:
        """Whether the ranks share some op of a batch: each of them does less than the whole of it. Without that, ranks that do
        the whole of a layer each may read one batch or several."""
        if self.one_batch:
            return True
        for place, cell in self._all().split(lambda row: (row.layer, phase_of(row), row.op)).items():
            whole = self._work(cell.one) * self.share
            done = [work for rows in cell.parts.values() if (work := self._work(rows))]
            if place[1] in _OF_BATCHES and done and max(done) < whole:
                return True
        return False
