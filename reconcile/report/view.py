"""What the Markdown report and the terminal both show, worked out once: lines, verdicts, findings.

Everything here is sums, groupings and sentences over what the engine computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..core.causes import State
from ..core.conventions import Convention
from ..core.errors import EXIT_FAILED
from ..core.results import Adjustment, LedgerResult, Mismatch, RunResult, Statement, TraceResult, Unknown
from ..core.text import multiple, number, signed
from ..engine.phases import PhaseRow, PhaseTable, phase_table, phases
from ..verdict.verdict import RESIDUAL as RESIDUAL
from ..verdict.verdict import CounterVerdict, counters_of

DEFAULT_FROM = "tf.profiler@frozen"
DEFAULT_TO = "thop"
CAUSES = 3  # in a sentence; the statements have them all


@dataclass(slots=True)
class Part:
    """One layer's share of a cause: the amount, with the ops and the counters whose accounting it corrects."""

    layer: str
    amount: int = 0
    ops: dict[str, None] = field(default_factory=dict)
    counters: dict[str, None] = field(default_factory=dict)
    reason: str = ""


@dataclass(slots=True)
class Block:
    """One cause of a statement (or its residual) with its layers; the parts add up to ``amount``."""

    cause: str
    amount: int
    parts: list[Part]


def blocks(statement: Statement, layers: Sequence[str] = ()) -> list[Block]:
    """The lines of a statement by cause, in booking order, then by layer (in the order of ``layers``); a residual that
    is not 0 comes last."""
    place = {layer: index for index, layer in enumerate(layers)}
    by_cause: dict[str, list[Adjustment]] = {cause.value: [] for cause in statement.by_cause()}
    for line in statement.adjustments:
        by_cause[line.cause.value].append(line)
    found = [_block(cause, lines) for cause, lines in by_cause.items()]
    for block in found:
        block.parts.sort(key=lambda part: place.get(part.layer, len(place)))
    if statement.residuals:
        parts = [Part(r.layer, r.amount, reason=r.reason) for r in statement.residuals]
        found.append(Block(RESIDUAL, sum(p.amount for p in parts), parts))
    return found


def _block(cause: str, lines: Iterable[Adjustment]) -> Block:
    parts: dict[str, Part] = {}
    for line in lines:
        part = parts.setdefault(line.layer, Part(line.layer))
        part.amount += line.amount
        part.ops[line.op] = None
        if line.counter:
            part.counters[line.counter] = None
    return Block(cause, sum(p.amount for p in parts.values()), list(parts.values()))


def distance(counter: CounterVerdict) -> str:
    """``exact``, ``91.9 % below``, ``1.2 % above``; empty where it cannot be said."""
    if counter.off is None:
        return ""
    if counter.off == 0:
        return "exact" if counter.state is State.EQUAL else "same total"
    how = counter.percent or number(abs(counter.off))
    return f"{how} {'below' if counter.off < 0 else 'above'}"


def closing(counter: CounterVerdict) -> str:
    """One sentence on a counter, without its name."""
    left = _left_out(counter.ledger)
    if counter.off is None:
        return f"{counter.state.value.replace('_', ' ')}: {_sentence(reason(counter))}"
    unexplained = counter.state is State.UNEXPLAINED and counter.statement is not None and counter.statement.residual
    rest = f" {number(unexplained)} FLOP remain unexplained." if unexplained else ""
    if counter.off == 0 and not counter.causes:
        return f"exact.{left}"
    how = (
        f"{distance(counter)} the work that ran" if counter.off else "the right total by errors that offset each other"
    )
    return f"{how}; {_to_add(counter)}.{rest}{left}"


def _to_add(counter: CounterVerdict) -> str:
    """The causes, the largest first: what has to be added to arrive at the work that ran."""
    causes = [f"{cause} {signed(amount)}" for cause, amount in counter.causes if cause != RESIDUAL]
    more = f" and {len(causes) - CAUSES} more" if len(causes) > CAUSES else ""
    return f"to add: {', '.join(causes[:CAUSES])}{more}" if causes else "no cause"


def reason(counter: CounterVerdict) -> str:
    """Why there is no number to compare: an incomplete trace, else the reason of the ledger or of the statement."""
    if counter.incomplete and counter.state is State.NOT_COMPARABLE:
        return f"{counter.incomplete} is incomplete"
    given = counter.ledger.reason or ("" if counter.statement is None else counter.statement.reason)
    return given or "no reason was given"


def _left_out(ledger: LedgerResult) -> str:
    names = list(ledger.unsupported)
    if not names:
        return ""
    shown = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
    return f" It says it did not support {shown}."


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else text + "."


def default_statement(result: RunResult) -> Statement | None:
    """tf.profiler@frozen to thop when both have totals; else the first counter with one to its trace; else any."""
    by_ends = {(s.from_, s.to): s for s in result.statements}
    first = by_ends.get((DEFAULT_FROM, DEFAULT_TO))
    candidates = [first, *(v.statement for v in counters_of(result)), *result.statements]
    there = [s for s in candidates if s is not None]
    return next((s for s in there if s.from_total is not None), there[0] if there else None)


def origin(result: RunResult, name: str, total: int | None) -> str:
    """How one end's normalised total comes about: ``thop 250 FLOP (reported 125 MAC × 2)``."""
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


def summary(result: RunResult) -> str:
    """The whole run in one sentence."""
    found = counters_of(result)
    named = {state: [v for v in found if v.state is state] for state in State}
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
    counters = f"{len(found)} counter{'' if len(found) == 1 else 's'}"
    if not found:
        counters = "no counter was run"
    if result.exit_code == EXIT_FAILED:
        verb = "A counter failed" if named[State.FAILED] else "Not everything could run"
    else:
        verb = "Not reconciled" if result.exit_code else "Reconciled"
    return f"{verb}: {counters}" + (f", {', '.join(parts)}." if parts else ".")


def lost(result: RunResult) -> list[str]:
    """One sentence per counter that failed or was skipped: which, and why."""
    kinds = (State.FAILED, State.SKIPPED)
    return [f"{v.ledger.counter}: {closing(v)}" for v in counters_of(result) if v.state in kinds]


def broken(result: RunResult) -> list[tuple[LedgerResult, Mismatch]]:
    """Every rule that broke, with its ledger."""
    return [(ledger, m) for ledger in result.ledgers for m in ledger.mismatches]


def broken_sentence(ledger: LedgerResult, m: Mismatch) -> str:
    """``rule broken at layer L: expected X, reported Y ...``."""
    return (
        f"rule broken at layer {m.layer or '(none)'}: expected {number(m.expected)}, reported {number(m.reported)} "
        f"{ledger.unit} by {ledger.counter} for {m.op}; rule {m.rule}, {m.source}"
    )


def unknown(result: RunResult) -> list[tuple[TraceResult, Unknown]]:
    """Every op whose work is unknown, with its trace."""
    return [(trace, u) for trace in result.traces for u in trace.unknown]


def unknown_sentence(trace: TraceResult, u: Unknown) -> str:
    """Which op, and where."""
    where = f" ({u.id})" if u.id and u.id != u.layer else ""
    return f"{trace.name} is incomplete: {u.op} at layer {u.layer or '(none)'}{where}: {u.reason}"


def unknown_sentences(result: RunResult) -> list[str]:
    """One sentence per op and reason, by the first place where it is; and of each such trace what of it is known."""
    found: list[str] = []
    for trace in (t for t in result.traces if t.unknown):
        groups: dict[tuple[str, str], list[Unknown]] = {}
        for u in trace.unknown:
            groups.setdefault((u.op, u.reason), []).append(u)
        for first, *others in groups.values():
            more = f" (and at {number(len(others))} more)" if others else ""
            found.append(unknown_sentence(trace, first) + more)
        known = number(sum(result.convention.flops(row.work) for row in trace.rows))
        unlisted = len(trace.unknown)
        found.append(
            f"{trace.name}: {known} FLOP known + {number(unlisted)} {'op' if unlisted == 1 else 'ops'} unknown"
        )
    return found


def traces_lost(result: RunResult) -> list[str]:
    """One sentence per trace that could not be had at all."""
    lost = [t for t in result.traces if not t.complete and not t.unknown]
    return [
        f"{t.name}: {t.state.value.replace('_', ' ')}: {_sentence(t.reason or 'no reason was given')}" for t in lost
    ]


def trace_label(trace: TraceResult) -> str:
    """What a trace's total is, in a word or three."""
    if trace.complete:
        return "work that ran"
    return "incomplete" if trace.unknown else trace.state.value.replace("_", " ")


def by_phase(trace: TraceResult, convention: Convention) -> str:
    """``forward 2,000, backward 4,000``; nothing where there is only one phase."""
    return ", ".join(f"{name} {number(flops)}" for name, flops in phases(trace, convention).items())


def phase_tables(result: RunResult, convention: Convention) -> list[tuple[str, PhaseTable]]:
    """A table by layer and phase for every trace that has more than the forward pass, with the frameworks it is of:
    those that do the same in every cell have one."""
    found: list[tuple[str, PhaseTable]] = []
    for trace in result.traces:
        table = phase_table(trace, convention)
        if table is None:
            continue
        same = next((i for i, (_, held) in enumerate(found) if _cells(held) == _cells(table)), None)
        if same is None:
            found.append((trace.framework, table))
        else:
            found[same] = (f"{found[same][0]} and {trace.framework}", found[same][1])
    return found


def published(result: RunResult) -> list[str]:
    """What somebody published for the model and what it is; what is said to be a pass beside what that pass takes."""
    found = []
    for claim in result.published:
        found.append(
            f"{claim.figure}, said to be {claim.claim} ({claim.source}): {claim.what or 'no reading fits it.'}"
        )
        backward = "backward" in claim.claim and "forward" not in claim.claim
        for framework, table in phase_tables(result, result.convention) if backward and claim.value else ():
            work = table.total.backward
            found.append(
                f"The backward pass that ran ({framework}), by the table above: {number(work)} FLOP under {table.convention}, "
                f"{signed(work - (claim.value or 0))} from {claim.figure}."
            )
    return found


def _cells(table: PhaseTable) -> tuple[object, ...]:
    return table.phases, frozenset((row.layer, row.known, frozenset(row.flops.items())) for row in table.rows)


def phase_cell(row: PhaseRow, phase: str, write: Callable[[int], str] = number) -> str:
    """A layer's FLOPs in a phase; nothing where nothing runs there. ``≥`` where some op's work is not known."""
    if phase not in row.flops:
        return "" if row.known else "unknown"
    return write(row.flops[phase]) if row.known else f"≥ {write(row.flops[phase])}"


def phase_ratio(row: PhaseRow) -> str:
    """``1.9694``; nothing where nothing is done forward."""
    if row.ratio is None:
        return "" if row.known else "unknown"
    return multiple(row.backward, row.forward)


def ratio_sentence(row: PhaseRow) -> str:
    """The whole trace's ratio with what it is made of; '' where there is none."""
    if row.ratio is None:
        return ""
    return (
        f"backward / forward = {number(row.backward)} / {number(row.forward)} = {phase_ratio(row)} "
        "(backward: gradients with respect to inputs and to weights, without loss and optimizer)"
    )
