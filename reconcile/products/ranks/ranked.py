"""``Ranked``, the result of ``reconcile run --ranks``: the answer of each rank, their sum, traffic, and one device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

from ... import workflow
from ...core.causes import State
from ...core.conventions import Convention
from ...core.records import GROUP
from ...core.results import Statement, TraceResult
from ...engine.answer import Answer
from ...engine.statements import block_statement
from ...launch.request import RunRequest
from .collect import collect
from .sent_bytes import sent_bytes
from .sums import ONE, SUM, Part, Sum
from .world import Rank, World

ONLY_SOME_RANKS_RAN = "only some ranks ran, so there is no sum: leave --rank out to run those that the sum needs."


@dataclass(frozen=True, slots=True)
class Fold:
    """Ranks that do equal work, and the answer of one of them."""

    ranks: tuple[int, ...]
    answer: Answer

    @property
    def trace(self) -> TraceResult:
        """What one of them ran."""
        return self.answer.traces[0]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls of a collective by one rank: ``line`` are the dimensions of the mesh that its group stands along, and ``payload`` is
    how many bytes the rank sends in a ring (nccl-tests doc/PERFORMANCE.md); None where the kind says no such number."""

    kind: str
    line: str
    size: int
    calls: int
    payload: Fraction | None


@dataclass(frozen=True)
class Ranked:
    """The result of ``reconcile run --ranks``: ``folds`` are ranks of equal work, ``one`` is the same step on one device."""

    world: World
    folds: tuple[Fold, ...]
    one: Answer | None = None

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Every answer."""
        return (*(fold.answer for fold in self.folds), *([self.one] if self.one is not None else []))

    @property
    def convention(self) -> Convention:
        """The run's."""
        return self.folds[0].answer.convention

    @property
    def whole(self) -> bool:
        """Whether the work of every rank is known."""
        return sum(len(fold.ranks) for fold in self.folds) == self.world.size and not self.world.chosen

    @cached_property
    def totals(self) -> dict[str, int]:
        """FLOPs of all ranks together, by convention; one under which the work of a rank is unknown is left out."""
        if not self.whole:
            return {}
        known = [fold.trace.totals for fold in self.folds]
        names = [name for name in known[0] if all(name in totals for totals in known)]
        return {name: sum(len(f.ranks) * f.trace.totals[name] for f in self.folds) for name in names}

    @cached_property
    def statement(self) -> Statement | None:
        """From the sum of ranks to one device; None if no such device was asked for."""
        if self.one is None:
            return None
        trace, name = self.one.traces[0], self.convention.name
        totals = self.totals.get(name), trace.totals.get(name)
        if not self.whole:
            return block_statement(SUM, ONE, State.NOT_COMPARABLE, ONLY_SOME_RANKS_RAN, totals)
        unknown = next((t for t in (*(f.trace for f in self.folds), trace) if name not in t.totals), None)
        if unknown is not None:
            return block_statement(SUM, ONE, State.NOT_COMPARABLE, unknown.reason, totals)
        parts = [Part(len(fold.ranks), fold.trace) for fold in self.folds]
        world = self.world
        whole = Sum(parts, trace, world.batches, world.share, self.convention, one_batch=world.one_batch)
        return whole.statement()

    @property
    def exit_code(self) -> int:
        """0 if everything is explained, 1 if something is not, 3 if a counter failed."""
        codes = [answer.exit_code for answer in self.answers]
        if self.statement is not None and self.statement.state not in (State.EQUAL, State.EXPLAINED):
            codes.append(1)
        return max(codes)

    def balance(self) -> tuple[Fold, Fraction, str] | None:
        """The rank with the most work, its work over the mean of all, and the layer that makes the most of the difference; None
        if all are equal or one is unknown."""
        mean = Fraction(self.totals.get(self.convention.name, 0), self.world.size)
        if not mean or len(self.folds) == 1:
            return None
        most = max(self.folds, key=lambda f: f.trace.totals[self.convention.name])
        work = most.trace.totals[self.convention.name]
        layers = self._by_layer(most)  # like layers of several stages count as one
        others: dict[str, Fraction] = {}
        for fold in self.folds:
            for layer, flops in self._by_layer(fold).items():
                others[layer] = others.get(layer, Fraction(0)) + Fraction(flops * len(fold.ranks), self.world.size)
        layer = max(layers, key=lambda name: layers[name] - others[name])
        return (most, work / mean, layer) if work != mean else None

    def _by_layer(self, fold: Fold) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in fold.trace.rows:
            layer = re.sub(r"\b\d+\b", "*", row.layer)
            found[layer] = found.get(layer, 0) + self.convention.flops(row.work)
        return found

    @cached_property
    def traffic(self) -> tuple[list[Traffic], ...]:
        """What a rank of each fold sends to others, by collective."""
        return tuple(self._traffic(rank) for rank in self.world.ranks)

    def _traffic(self, rank: Rank) -> list[Traffic]:
        label = cache(self.world.mesh.label)
        found: dict[tuple[str, str, int], tuple[int, Fraction | None]] = {}
        for op in rank.trace.ops:
            group = op.attrs.get(GROUP)
            told = sent_bytes(op)
            if group is None or told is None:
                continue
            kind, payload = told
            key = kind, label(tuple(group["ranks"])), len(group["ranks"])
            calls, so_far = found.get(key, (0, Fraction(0)))
            both = None if payload is None or so_far is None else so_far + payload * op.calls
            found[key] = calls + op.calls, both
        return [Traffic(*key, *value) for key, value in found.items()]


def run_ranks(request: RunRequest, world: int, chosen: Sequence[int] = (), against: str = "") -> Ranked:
    """Run the ranks and reconcile each of them. Raises UsageError as ``collect`` does."""
    found = collect(request, world, chosen, against)
    folds = [Fold(rank.ranks, _answer(request, rank)) for rank in found.ranks]
    return Ranked(found, tuple(folds), _answer(request, found.one) if found.one is not None else None)


def _answer(request: RunRequest, rank: Rank) -> Answer:
    return workflow.run(request, take=lambda *_: rank.collected)
