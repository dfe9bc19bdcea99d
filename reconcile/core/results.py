"""Results: frozen records that the engine computes and the reports render. Reports add nothing to them.

All amounts are FLOPs under the run's convention (ints); ``None`` appears only where a ``state`` says why there is no number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .causes import ORDER, Cause, State
from .conventions import Convention
from .records import OWN_STEP, Op, Tensor
from .work import COMPONENTS, Work


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One op of a trace. ``work`` covers all ``calls``; ``layer`` is the pair's name, ``path`` the framework's."""

    id: str
    layer: str
    path: str
    op: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    calls: int
    phase: str
    work: Work


@dataclass(frozen=True, slots=True)
class Unknown:
    """An op that makes a trace incomplete, under every convention that weighs one of its unknown ``components``."""

    layer: str
    op: str
    id: str
    reason: str
    components: frozenset[str] = frozenset(COMPONENTS)


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The work that ran in one framework, under one convention: a trace is complete under one that weighs nothing unknown.

    ``totals`` has the FLOPs under each convention under which it is complete. ``unknown`` are the ops that make it incomplete
    under this one; ``unweighed`` are those with unknown components to which only other conventions give a weight.
    ``stated`` are FLOPs by op that this tool did not compute: their library's own formula gives them.
    """

    name: str
    framework: str
    state: State
    reason: str
    complete: bool
    device: str
    versions: Mapping[str, str]
    rows: tuple[TraceRow, ...]
    unknown: tuple[Unknown, ...]
    no_arithmetic: Mapping[str, int]
    integer_ops: Mapping[str, int]
    totals: Mapping[str, int]
    notes: tuple[str, ...]
    unweighed: tuple[Unknown, ...] = ()
    stated: Mapping[str, int] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """The steps of an optimizer in it: as many as the note of a program's own step says, else one."""
        own = next((note for note in self.notes if note.startswith(OWN_STEP)), "")
        found = re.search(r"(\d+) steps? of an optimizer", own)
        return int(found[1]) if found else 1

    def gaps(self, convention: Convention) -> tuple[Unknown, ...]:
        """The ops that make the trace incomplete under this convention, which may be another one than the run's."""
        return tuple(u for u in (*self.unknown, *self.unweighed) if convention.weighs(u.components))


@dataclass(frozen=True, slots=True)
class EntryResult:
    """One ledger entry, in the counter's own unit."""

    id: str
    layer: str
    op: str
    value: int
    calls: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A rule that broke: at this entry the rule expects another value than the counter reported (counter's unit)."""

    entry: str
    layer: str
    op: str
    rule: str
    source: str
    expected: int
    reported: int


@dataclass(frozen=True, slots=True)
class LedgerResult:
    """What one counter reported. ``total`` is None only if state is FAILED, SKIPPED or NOT_COMPARABLE (see reason)."""

    counter: str
    framework: str
    state: State
    reason: str
    unit: str
    device: str
    versions: Mapping[str, str]
    total: int | None
    normalised_total: int | None
    entries: tuple[EntryResult, ...]
    checked: int
    unchecked: int
    mismatches: tuple[Mismatch, ...]
    unsupported: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The inputs of an adjustment, never an amount. ``engine/recompute.py`` computes the amount from them again.

    ``side`` is 'from', 'to' or 'between'. ``rule``/``source``: the counter's rule and its place in the counter's source.
    ``seen``: the ops as the counter saw them; ``ops``: ids of trace rows; ``seen_times``/``times``: how often the
    counter counted one execution of ``seen`` and how often it ran. ``component``: for
    differences between traces; ``only``: the components of the work that the line is about (none: all).
    """

    side: str
    counter: str
    rule: str
    source: str
    cause: Cause | None
    repeat: Cause | None
    seen: tuple[Op, ...]
    ops: tuple[str, ...]
    seen_times: int
    times: int
    layer: str
    component: str = ""
    formula: str = ""
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One line of a statement: ``amount`` FLOPs (signed, never 0) at ``layer`` for ``cause``.

    ``counter`` is the counter that it corrects, '' for a real difference between the traces or a line that nets both
    sides.
    """

    cause: Cause
    layer: str
    op: str
    counter: str
    amount: int
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Residual:
    """The unexplained FLOPs at one layer of a statement, with a sentence."""

    layer: str
    amount: int
    reason: str


@dataclass(frozen=True, slots=True)
class Statement:
    """from_total + sum of adjustments + residual = to_total. Totals and residual are None only if state says why."""

    from_: str
    to: str
    state: State
    reason: str
    from_total: int | None
    to_total: int | None
    adjustments: tuple[Adjustment, ...]
    residual: int | None
    residuals: tuple[Residual, ...]

    @property
    def closed(self) -> bool:
        """Whether the statement leads from one total to the other; if not, ``state`` and ``reason`` say why."""
        return None not in (self.from_total, self.to_total, self.residual)

    def by_cause(self) -> dict[Cause, int]:
        """Sum of the adjustments per cause, in booking order."""
        sums: dict[Cause, int] = {}
        for line in self.adjustments:
            sums[line.cause] = sums.get(line.cause, 0) + line.amount
        return dict(sorted(sums.items(), key=lambda pair: ORDER[pair[0]]))


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer of the pair: work that ran per framework (left out where an op's work is unknown), normalised
    value per counter, and the causes between them.

    ``causes[counter][cause]`` is the amount to ADD to the counter's cell to arrive at the work that ran.
    """

    layer: str
    work: Mapping[str, int]
    counters: Mapping[str, int]
    causes: Mapping[str, Mapping[Cause, int]]
    residuals: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Match:
    """One row of models that were aligned automatically: the layers that belong together, as paths by framework.

    ``paths`` has every framework, in the order of the registry; a framework without a layer has (). ``by`` is the evidence,
    '' for a layer without a partner; ``comment`` then says why.
    """

    layer: str
    paths: Mapping[str, tuple[str, ...]]
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure for the model: the digits as printed, what the publisher says they are and where, and what they are.

    ``what`` is the simplest reading with its arithmetic, '' if none fits; ``value`` is the number it comes to.
    """

    figure: str
    claim: str
    source: str
    what: str
    value: int | None


@dataclass(frozen=True, slots=True)
class RunResult:
    """The results of one run; ``engine/answer.py`` has what follows from them.

    ``exit_code`` is 0 reconciled, 1 unexplained or incomplete, 3 a counter failed.
    ``inputs`` (framework -> text) are the inputs the model was called with, if known.
    ``published`` are published figures for the model, if they were looked up.
    ``alignment`` is empty if the pair declares which layers belong together.
    """

    model: str
    pass_: str
    convention: Convention
    params: Mapping[str, object]
    environment: Mapping[str, str]
    description: str
    traces: tuple[TraceResult, ...]
    ledgers: tuple[LedgerResult, ...]
    layers: tuple[LayerRow, ...]
    statements: tuple[Statement, ...]
    exit_code: int
    notes: tuple[str, ...] = field(default=())
    inputs: Mapping[str, str] = field(default_factory=dict)
    alignment: tuple[Match, ...] = field(default=())
    published: tuple[Claim, ...] = field(default=())

    def statement(self, from_: str, to: str) -> Statement:
        """The statement between two counters (or traces). Raises KeyError if there is none."""
        for statement in self.statements:
            if (statement.from_, statement.to) == (from_, to):
                return statement
        raise KeyError((from_, to))
