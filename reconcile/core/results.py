"""Results: frozen records of traces, ledgers, statements and layers that the engine computes and the reports render unchanged.

All amounts are FLOPs under the run's convention (ints); ``None`` appears only where a ``state`` says why there is no number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .causes import ORDER, Cause, State
from .conventions import Convention
from .records import OWN_STEP, Entry, Op, Tensor
from .work import COMPONENTS, Work


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One op of a trace that does arithmetic.

    Attributes:
        id: The op's id in the trace.
        layer: The pair's name for the layer in which it ran.
        path: The framework's path of that layer.
        op: The framework's name of the operation.
        inputs: Shapes and types of the tensors that it read.
        outputs: Shapes and types of the tensors that it returned.
        calls: How often it ran, at least 1.
        phase: The part of the step that it belongs to, one of ``records.PHASES``.
        work: The work of all ``calls``, as far as it is known.
    """

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
    """An op that makes a trace incomplete, under every convention that weighs one of its unknown ``components``.

    ``lacks_formula`` says whether a formula of the user's can give its work. It cannot where something else is not known, such as
    how often the op ran, or what its mask discards.
    """

    layer: str
    op: str
    id: str
    reason: str
    components: frozenset[str] = frozenset(COMPONENTS)
    lacks_formula: bool = True


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The work that ran in one framework, under one convention: a trace is complete under one that weighs nothing unknown.

    Attributes:
        name: Its name in statements: ``trace@`` and the framework.
        framework: The framework's name in the registry.
        state: EXPLAINED if complete, UNEXPLAINED if not, and another state if there is no trace.
        reason: Why it is incomplete or missing, in a sentence; '' if it is complete.
        complete: Whether the work of every op is known that the convention weighs.
        device: Where it ran, as in ``records.Trace``; '' if there is no trace.
        versions: Versions by package; empty if there is no trace.
        rows: The ops that do arithmetic, in the trace's order.
        unknown: The ops that make it incomplete under this convention.
        no_arithmetic: How often each kind of op ran that does no arithmetic, such as a view.
        integer_ops: How often each kind of op ran that computed on integers alone, which is no floating-point work.
        totals: FLOPs by the name of each convention under which it is complete.
        notes: What a reader has to know of how it was taken, a sentence each.
        unweighed: The ops with unknown components to which only other conventions give a weight.
        stated: FLOPs by kind of op that this tool did not compute: their library's own formula gives them.
        parameters: The elements of the parameters of each layer; empty if not known.
    """

    name: str
    framework: str
    state: State
    reason: str
    complete: bool
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[TraceRow, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    no_arithmetic: Mapping[str, int] = field(default_factory=dict)
    integer_ops: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unweighed: tuple[Unknown, ...] = ()
    stated: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, int] = field(default_factory=dict)

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
    """What one counter reported, and whether its rules expect that.

    Attributes:
        counter: The counter's name in the registry.
        framework: The framework of the model that it counted.
        state: EQUAL if it reported the work that ran, EXPLAINED or UNEXPLAINED if it differs, and another state if it has no
            total or no trace to compare it with.
        reason: Why there is no total or nothing to compare it with; '' otherwise.
        unit: The counter's own unit, MAC or FLOP.
        device: Where the model ran for it, as in ``records.Trace``.
        versions: Versions by package, those that selected its rules among them; empty if there is no total.
        total: What it reported, in its own unit; None only if ``state`` is FAILED, SKIPPED or NOT_COMPARABLE.
        normalised_total: ``total`` in FLOPs, a MAC being two; None if that is.
        entries: What it reported by op and layer of the pair, in its own unit. One of several layers has a part in each.
        checked: How many of the counter's entries a rule covers.
        unchecked: How many no rule covers.
        mismatches: The entries for which the rules expect another value.
        unsupported: How often it met each kind of op that it has no number for.
        notes: What a reader has to know of how it was counted, a sentence each.
    """

    counter: str
    framework: str
    state: State
    reason: str
    unit: str
    device: str
    versions: Mapping[str, str] = field(default_factory=dict)
    total: int | None = None
    normalised_total: int | None = None
    entries: tuple[Entry, ...] = ()
    checked: int = 0
    unchecked: int = 0
    mismatches: tuple[Mismatch, ...] = ()
    unsupported: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The inputs of an adjustment, never an amount. `counter conform` recomputes the amount from them.

    Attributes:
        side: ``"from"`` or ``"to"`` for the counter at that end of the statement, ``"between"`` for two traces.
        counter: The counter whose rule it is; '' between traces.
        rule: The rule's id, or the kernels that ran on a GPU; '' between traces, and for what the counter has no rule for.
        source: The rule's place in the counter's source; '' without a rule.
        cause: The cause of the whole difference, where it has one alone; None if it is booked component by component.
        repeat: Why ``seen_times`` and ``times`` differ, where the counter's bridge says so; None otherwise.
        seen: The ops as the counter saw them; () between traces.
        ops: Ids of trace rows; ``tf:id`` and ``torch:id`` between traces. () if what ran is the work of ``seen`` itself.
        seen_times: How often the counter counted one execution of ``seen``; 0 between traces.
        times: How often one execution ran; 0 between traces, and for what never ran.
        layer: The pair's name of the layer.
        component: The component of the work that differs between traces; '' for a counter.
        formula: What the counter counts for it by the rule, or, between traces, the ops that each has; '' if neither is stated.
        only: The components of the work that the line is about; () for all.
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
    """from_total + sum of adjustments + residual = to_total.

    Attributes:
        from_: The counter or trace at which it starts.
        to: The counter or trace at which it ends.
        state: EQUAL, EXPLAINED or UNEXPLAINED if it leads from one to the other, and otherwise why it does not.
        reason: The reason of that state, in a sentence; '' if nothing is unexplained.
        from_total: FLOPs at the start; None only if ``state`` says why.
        to_total: FLOPs at the end; None only if ``state`` says why.
        adjustments: The lines between them; of a statement that is not closed, those that are known.
        residual: The FLOPs that no line explains; None if the statement is not closed.
        residuals: The parts of ``residual`` that are not 0, by layer. They add up to it.
    """

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
    def is_closed(self) -> bool:
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
    """A published number for the model: the digits as printed, what the publisher says they are and where, and what they are.

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

    Attributes:
        model: The pair's name, or one that is made of the places of a user's own models.
        pass_: What ran: the phases, joined by ``+``, ``"training"``, ``"prefill"``, or ``"decode"`` with the context.
        convention: The convention of every amount here.
        params: The pair's settings by name; for a user's own model, its place by framework.
        environment: Versions by package, this tool's own among them.
        description: The docstring of the pair's module; '' for a user's own model.
        traces: One for each framework, also where none could be taken.
        ledgers: One for each counter, also where it has no total.
        layers: One for each layer of the pair, the rows of the table.
        statements: From each counter to its trace, and across frameworks from each to each.
        exit_code: 0 reconciled, 1 unexplained or incomplete, 3 a counter failed.
        notes: What the pair says of itself, a sentence each.
        inputs: The inputs that the model was called with, as text by framework, if known.
        alignment: Which layers belong together, where they were aligned automatically; empty if the pair declares it.
        published: Published numbers for the model, if they were looked up.
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
