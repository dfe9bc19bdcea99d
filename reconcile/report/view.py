"""Sentences and selections that the Markdown report, the terminal, the notebook and the HTML page share.

The matrix and products use them, too. The amounts come from the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..core.causes import Cause, State
from ..core.conventions import Convention
from ..core.errors import EXIT_FAILED
from ..core.number_format import format_count, format_signed, list_first, multiple, number, ratio
from ..core.records import LOSS, TRAINING
from ..core.registry import choose_leading, known_counters
from ..core.results import LedgerResult, Statement, TraceResult, Unknown
from ..engine.answer import Answer
from ..engine.breakdown import RESIDUAL, known_work
from ..engine.phases import PhaseRow, PhaseTable
from ..engine.verdict import CounterVerdict
from .document import Inline, Span
from .document import Statement as StatementBlock

CAUSES = 3  # in a sentence; the statements have all of them
COUNTER_TITLES = "counter|as reported>|unit|normalised FLOP>|to the work>|work that ran>|off by>|state|largest cause"


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A run under one convention in the words that its pages share.

    Attributes:
        result: The run.
        headline: The statement that a page shows first.
        summary: The whole of it in one sentence.
        broken: A sentence on every rule that broke.
        unknown: A sentence on every op whose work is unknown.
        missing: A sentence on each trace that is missing altogether.
        left_out: What counters did not support, and what is not counted as work.
        traces: Each trace, with a label for its total, and its FLOPs by phase if it has several.
        counters: Each counter's cells below ``COUNTER_TITLES``, and its ratio to the work that ran.
        phases: The tables by layer and phase, with the names of their frameworks.
    """

    result: Answer
    headline: Statement | None
    summary: str
    broken: list[str]
    unknown: list[str]
    missing: list[str]
    left_out: list[str]
    traces: list[tuple[TraceResult, str, str]]
    counters: list[tuple[tuple[Inline, ...], str]]
    phases: list[tuple[str, PhaseTable]]

    @property
    def lacks_formula(self) -> bool:
        """Whether a formula of the user's could give some of the unknown work."""
        return any(u.lacks_formula for trace in self.result.traces for u in trace.unknown)


def describe_answer(result: Answer, headline: Statement | None = None) -> AnswerView:
    """What the pages of a run say of it, ``headline`` first (default: see default_statement)."""
    return AnswerView(
        result,
        headline or default_statement(result),
        summary(result),
        broken_sentences(result),
        [unknown_sentence(trace, u) for trace in result.traces for u in trace.unknown],
        list_missing_traces(result),
        list(list_left_out(result)),
        [(trace, trace_label(trace), by_phase(result, trace)) for trace in result.traces],
        [(counter_cells(counter), _share(counter)) for counter in result.verdict.counters],
        phase_tables(result, result.convention),
    )


def counter_cells(v: CounterVerdict) -> tuple[Inline, ...]:
    """The cells of a counter below ``COUNTER_TITLES``; the last is why it has no number, if it has none."""
    reported, total = ("" if n is None else number(n) for n in (v.ledger.total, v.ledger.normalised_total))
    off = ("", "") if v.off is None or v.work is None else (format_signed(-v.off), number(v.work))
    cause = f"{v.causes[0][0]} {format_signed(v.causes[0][1])}" if v.causes else ""
    state = Span(state_word(v.state.value), v.state.value)
    why = describe_reason(v) if v.off is None else cause
    return v.ledger.counter, reported, v.ledger.unit, total, *off, describe_distance(v), state, why


def _share(v: CounterVerdict) -> str:
    """A counter's total as a ratio to the work that ran; '' if either is unknown."""
    return "" if v.off is None or v.work is None else ratio(v.work + v.off, v.work)


def describe_distance(counter: CounterVerdict) -> str:
    """``91.9 % below``, ``1.2 % above``, ``0``, ``same total`` by errors that offset each other; empty if it is unknown."""
    if counter.off is None:
        return ""
    if counter.off == 0:
        return "0" if counter.state is State.EQUAL else "same total"
    how = counter.percent or number(abs(counter.off))
    return f"{how} {'below' if counter.off < 0 else 'above'}"


def split_description(result: Answer) -> tuple[str, str]:
    """The author's text on the pair in two parts: on the model, and on the differences of the frameworks."""
    about, _, rest = result.description.partition("How the frameworks differ here")
    return about.strip(), rest.strip(": \n")


def state_word(state: str) -> str:
    """A state's value as people read it: ``exact``, ``explained``, ``not comparable``."""
    return "exact" if state == State.EQUAL.value else state.replace("_", " ")


def describe_closing(counter: CounterVerdict, brief: bool = False) -> str:
    """One sentence on a counter, without its name; ``brief`` leaves out the numbers that a table of totals shows and the
    ops that the counter reported as unsupported."""
    left = "" if brief else _left_out(counter.ledger)
    if counter.off is None:
        return f"{counter.state.value.replace('_', ' ')}: {as_sentence(describe_reason(counter))}"
    unexplained = counter.state is State.UNEXPLAINED and counter.statement is not None and counter.statement.residual
    rest = f" {number(unexplained)} FLOP remain unexplained." if unexplained else ""
    if counter.exact:
        return f"exact.{left}"
    if brief and counter.off:
        return f"{_to_add(counter)}.{rest}{_name_uncounted(counter)}"
    if counter.off:
        how = f"{describe_distance(counter)} the work that ran"
    elif counter.state is State.UNEXPLAINED:
        how = "the right total, and not by the rules that it is known to follow"
    else:
        how = "the right total by errors that offset each other"
    return f"{how}; {_to_add(counter)}.{rest}{left}"


def _name_uncounted(counter: CounterVerdict) -> str:
    """A sentence on the ops for which the counter has no formula: the statement of a large model does not name them."""
    lines = counter.statement.adjustments if counter.statement is not None else ()
    ops = dict.fromkeys(line.op for line in lines if line.cause is Cause.OP_NOT_COUNTED)
    return f" Not counted: {list_first(list(ops), CAUSES)}." if ops else ""


def _to_add(counter: CounterVerdict) -> str:
    """The amounts to add to get the work that ran, by cause, the largest first."""
    causes = [f"{cause} {format_signed(amount)}" for cause, amount in counter.causes if cause != RESIDUAL]
    return f"to add: {list_first(causes, CAUSES)}" if causes else "no cause"


def describe_reason(counter: CounterVerdict) -> str:
    """Why there is no number to compare: an incomplete trace, else the reason of the ledger or of the statement."""
    if counter.incomplete and counter.state is State.NOT_COMPARABLE:
        return f"{counter.incomplete} is incomplete"
    given = counter.ledger.reason or ("" if counter.statement is None else counter.statement.reason)
    return given or "no reason was given"


def _left_out(ledger: LedgerResult) -> str:
    names = list(ledger.unsupported)
    return f" It says it did not support {list_first(names, 2)}." if names else ""


def as_sentence(text: str) -> str:
    """The text on one line, with a full stop if it ends without one."""
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else text + "."


def default_statement(result: Answer) -> Statement | None:
    """From the leading counter of the first framework to that of the second, if it is closed.

    Else the first counter whose statement to its trace is closed, a leading one before the others; else any statement.
    """
    by_ends = {(s.from_, s.to): s for s in result.statements}
    from_, to, *_ = choose_leading("call")
    first = by_ends.get((from_, to))
    leaders = choose_leading("step" if result.pass_ == TRAINING else "call")
    own = sorted(result.verdict.counters, key=lambda each: each.ledger.counter not in leaders)
    statements = [first, *(each.statement for each in own), *result.statements]
    candidates = [s for s in statements if s is not None]
    ranked = [s for s in candidates if s.is_closed] or [s for s in candidates if s.from_total is not None] or candidates
    return ranked[0] if ranked else None


def describe_origin(result: Answer, name: str, total: int | None) -> str:
    """The origin of one end's normalised total: ``thop 250 FLOP (reported 125 MAC × 2)``."""
    ledger = next((x for x in result.ledgers if x.counter == name), None)
    if total is None and ledger is not None:
        total = ledger.normalised_total
    if total is None:
        return f"{name} (no total)"
    if ledger is None or ledger.total is None:
        return f"{name} {number(total)} FLOP (the work that ran)"
    if ledger.total == total:
        return f"{name} {number(total)} FLOP (as reported)"
    times = f" × {total // ledger.total}" if ledger.total and total % ledger.total == 0 else ""
    return f"{name} {number(total)} FLOP (reported {number(ledger.total)} {ledger.unit}{times})"


def describe_statement(result: Answer, statement: Statement) -> StatementBlock:
    """A statement of a run as a block of a document, with the origin of its totals."""
    ends = ((statement.from_, statement.from_total), (statement.to, statement.to_total))
    totals = "Normalised totals: " + " → ".join(describe_origin(result, *end) for end in ends)
    return StatementBlock(statement, tuple(row.layer for row in result.layers), totals=totals)


def list_variants(result: Answer) -> list[str]:
    """What the members of a family stand for, where several of one ran: ``@frozen``: tf.profiler on the frozen graph."""
    ran = [known_counters()[x.counter] for x in result.ledgers if x.counter in known_counters()]
    families = Counter(counter.family for counter in ran)
    return [
        f"@{counter.name.partition('@')[2]}: {counter.summary}"
        for counter in ran
        if families[counter.family] > 1 and "@" in counter.name
    ]


def summary(result: Answer) -> str:
    """The whole run in one sentence."""
    verdicts = result.verdict.counters
    named = {state: [v for v in verdicts if v.state is state] for state in State}
    parts = []
    if named[State.EQUAL]:
        parts.append(f"{len(named[State.EQUAL])} exact")
    if named[State.EXPLAINED]:
        parts.append(f"{len(named[State.EXPLAINED])} off and explained to the last unit")
    for state in (State.UNEXPLAINED, State.NOT_COMPARABLE, State.FAILED, State.SKIPPED):
        if named[state]:
            parts.append(f"{len(named[state])} {state.value.replace('_', ' ')}")
    incomplete = [t for t in result.traces if t.unknown]
    if incomplete:
        parts.append(f"{', '.join(t.name for t in incomplete)} incomplete")
    counters = format_count(len(verdicts), "counter") if verdicts else "no counter was run"
    if result.exit_code == EXIT_FAILED:
        verb = "A counter failed" if named[State.FAILED] else "Not everything could run"
    else:
        verb = "Not reconciled" if result.exit_code else "Reconciled"
    return f"{verb}: {counters}" + (f", {', '.join(parts)}." if parts else ".")


def list_failed_counters(result: Answer) -> list[str]:
    """A sentence on each counter that failed or was skipped: its name and the reason."""
    kinds = (State.FAILED, State.SKIPPED)
    return [f"{v.ledger.counter}: {describe_closing(v)}" for v in result.verdict.counters if v.state in kinds]


def broken_sentences(result: Answer) -> list[str]:
    """``rule broken at layer L: expected X, reported Y ...``, with the module of the rules, for every rule that broke."""
    modules = {name: f"; its rules are in {counter.module}.rules" for name, counter in known_counters().items()}
    return [
        f"rule broken at layer {m.layer or '(none)'}: expected {number(m.expected)}, reported {number(m.reported)} "
        f"{ledger.unit} by {ledger.counter} for {m.op}; rule {m.rule}, {m.source}{modules.get(ledger.counter, '')}"
        for ledger in result.ledgers
        for m in ledger.mismatches
    ]


def unknown_sentence(trace: TraceResult, u: Unknown) -> str:
    """A sentence on an op of unknown work: its name, its place and why."""
    where = f" ({u.id})" if u.id and u.id != u.layer else ""
    return f"{trace.name} is incomplete: {u.op} at layer {u.layer or '(none)'}{where}: {u.reason}"


def unknown_sentences(result: Answer) -> list[str]:
    """A sentence per op and reason, with the first place of the op; then, for each such trace, its known work."""
    sentences: list[str] = []
    for trace in (t for t in result.traces if t.unknown):
        groups: dict[tuple[str, str], list[Unknown]] = {}
        for u in trace.unknown:
            groups.setdefault((u.op, u.reason), []).append(u)
        for first, *others in groups.values():
            more = f" (and at {number(len(others))} more)" if others else ""
            sentences.append(unknown_sentence(trace, first) + more)
        known = number(known_work(trace, result.convention))
        sentences.append(f"{trace.name}: {known} FLOP known + {format_count(len(trace.unknown), 'op')} unknown")
    return sentences


def list_missing_traces(result: Answer) -> list[str]:
    """A sentence on each trace that is missing altogether."""
    missing = [t for t in result.traces if not t.complete and not t.unknown]
    return [
        f"{t.name}: {t.state.value.replace('_', ' ')}: {as_sentence(t.reason or 'no reason was given')}"
        for t in missing
    ]


def list_left_out(result: Answer) -> Iterator[str]:
    """A sentence on the ops that each counter did not support, and on those of each trace that are not counted as work."""

    def several(counts: Mapping[str, int]) -> str:
        return ", ".join(f"{op} × {number(counts[op])}" for op in sorted(counts, key=str.lower))

    for ledger in result.ledgers:
        if ledger.unsupported:
            yield f"{ledger.counter} says it did not support: {several(ledger.unsupported)}"
    for trace in result.traces:
        if trace.no_arithmetic:
            yield f"{trace.name}, ops that do no arithmetic: {several(trace.no_arithmetic)}"
        if trace.integer_ops:
            yield f"{trace.name}, integer bookkeeping, not floating-point work: {several(trace.integer_ops)}"


def trace_label(trace: TraceResult) -> str:
    """A label of one to three words for a trace's total."""
    if trace.complete:
        return "work that ran"
    return "incomplete" if trace.unknown else trace.state.value.replace("_", " ")


def by_phase(result: Answer, trace: TraceResult) -> str:
    """A trace's FLOPs by phase as text: ``forward 2,000, backward 4,000``; empty if there is only one phase."""
    return ", ".join(f"{name} {number(flops)}" for name, flops in result.by_phase(trace).items())


def phase_tables(result: Answer, convention: Convention) -> list[tuple[str, PhaseTable]]:
    """A table by layer and phase for every trace that has more than the forward pass, with the names of its frameworks.
    Frameworks whose tables are equal in every cell share one."""
    tables: list[tuple[str, PhaseTable]] = []
    for trace in result.traces:
        table = result.phase_table(trace, convention)
        if table is None:
            continue
        same = next((i for i, (_, other) in enumerate(tables) if _cells(other) == _cells(table)), None)
        if same is None:
            tables.append((trace.framework, table))
        else:
            tables[same] = (f"{tables[same][0]} and {trace.framework}", tables[same][1])
    return tables


def list_published(result: Answer) -> list[str]:
    """The published numbers of the model and their readings. One of a backward pass is compared with the pass that ran."""
    sentences = []
    for claim in result.published:
        sentences.append(
            f"{claim.figure}, said to be {claim.claim} ({claim.source}): {claim.what or 'no reading fits it.'}"
        )
        backward = "backward" in claim.claim and "forward" not in claim.claim
        for framework, table in phase_tables(result, result.convention) if backward and claim.value else ():
            work = table.total.backward
            sentences.append(
                f"The backward pass that ran ({framework}), by the table above: {number(work)} FLOP under {table.convention}, "
                f"{format_signed(work - (claim.value or 0))} from {claim.figure}."
            )
    return sentences


def _cells(table: PhaseTable) -> tuple[object, ...]:
    return table.phases, frozenset((row.layer, row.known, frozenset(row.flops.items())) for row in table.rows)


def phase_cell(row: PhaseRow, phase: str, write: Callable[[int], str] = number) -> str:
    """A layer's FLOPs in a phase; empty if nothing runs there. ``≥`` if the work of some op is unknown."""
    if phase not in row.flops:
        return "" if row.known else "unknown"
    return write(row.flops[phase]) if row.known else f"≥ {write(row.flops[phase])}"


def phase_ratio(row: PhaseRow) -> str:
    """Backward over forward as text: ``1.9694``; empty if the forward pass does no work."""
    if row.ratio is None:
        return "" if row.known else "unknown"
    return multiple(row.backward, row.forward)


def utilisation_sentence(row: PhaseRow, steps: int) -> str:
    """The numerators of MFU and HFU of a whole step, or of ``steps`` together; '' if the work of an op is unknown."""
    if not row.known or not row.total:
        return ""
    of = {0: "in all, and no optimizer stepped", 1: "per step"}.get(steps, f"of {number(steps)} steps together")
    beside = " and ".join(f"{phase} {number(flops)}" for phase, flops in row.other_phases.items())
    beside = f"; beside them {beside}" if beside else ""
    if not row.recomputed_flops:
        return f"for MFU and HFU: {number(row.mfu_flops)} FLOPs {of}; nothing is computed again{beside}"
    return (
        f"for MFU: {number(row.mfu_flops)} FLOPs {of}, without what is computed again; for HFU: {number(row.hfu_flops)}, "
        f"of them {number(row.recomputed_flops)} computed again{beside}"
    )


def ratio_sentence(row: PhaseRow) -> str:
    """The ratio of the whole trace with both its terms; '' if there is no ratio."""
    if row.ratio is None:
        return ""
    without = "loss and optimizer" if LOSS in row.flops else "optimizer; the user's own loss is in both"
    return (
        f"backward / forward = {number(row.backward)} / {number(row.forward)} = {phase_ratio(row)} "
        f"(backward: gradients with respect to inputs and to weights, without {without})"
    )
