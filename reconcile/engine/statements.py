"""The algebra of statements: close one, reverse it, chain several, net their lines, find or chain the one between two names.

Every counter has a statement to its trace, and there is one between the traces. Every other statement is a chain of these:
A to its trace, trace to trace, and B's own statement reversed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ..core.causes import ORDER, Cause, State
from ..core.results import Adjustment, Evidence, Residual, RunResult, Statement

STATES_WITHOUT_RESIDUAL = (State.FAILED, State.SKIPPED, State.NOT_COMPARABLE)
"""States without a residual; a chain takes the first state of this list that any of its steps has."""

UNATTRIBUTED = "(unattributed)"
_OTHER_SIDE = {"from": "to", "to": "from"}


def close_statement(
    from_: str,
    to: str,
    totals: tuple[int | None, int | None],
    lines: Sequence[Adjustment],
    residuals: Sequence[Residual],
) -> Statement:
    """A statement that adds up: the remainder after all lines is the residual, attributed to layers as far as possible.

    A residual of 0 is work that differs and comes to the same amount: the statement is unexplained all the same.
    """
    from_total, to_total = totals
    assert from_total is not None
    assert to_total is not None
    residual = to_total - from_total - sum(a.amount for a in lines)
    remaining = [r for r in residuals if r.amount]
    rest = residual - sum(r.amount for r in remaining)
    if rest:
        remaining.append(Residual(UNATTRIBUTED, rest, "no layer accounts for this part"))
    unexplained = remaining or list(residuals)
    if unexplained:
        state, reason = State.UNEXPLAINED, "; ".join(r.reason for r in unexplained[:3])
    else:
        state, reason = (State.EXPLAINED if lines else State.EQUAL), ""
    return Statement(from_, to, state, reason, from_total, to_total, tuple(lines), residual, tuple(remaining))


def block_statement(
    from_: str,
    to: str,
    state: State,
    reason: str,
    totals: tuple[int | None, int | None],
    lines: Sequence[Adjustment] = (),
) -> Statement:
    """A statement that cannot be completed, with the state and the sentence that say why; known totals and lines are kept."""
    return Statement(from_, to, state, reason, totals[0], totals[1], tuple(lines), None, ())


def reverse_statement(statement: Statement) -> Statement:
    """The same statement in the opposite direction: ends exchanged, signs turned."""
    return replace(
        statement,
        from_=statement.to,
        to=statement.from_,
        from_total=statement.to_total,
        to_total=statement.from_total,
        adjustments=tuple(_reverse_line(line) for line in statement.adjustments),
        residual=None if statement.residual is None else -statement.residual,
        residuals=tuple(replace(r, amount=-r.amount) for r in statement.residuals),
    )


def _reverse_line(line: Adjustment) -> Adjustment:
    evidence: tuple[Evidence, ...] = tuple(replace(e, side=_OTHER_SIDE.get(e.side, e.side)) for e in line.evidence)
    return replace(line, amount=-line.amount, evidence=evidence)


def chain_statements(steps: Sequence[Statement]) -> Statement:
    """One statement from the start of the first step to the end of the last; each step starts where the previous one ended.

    Lines are netted, and residuals of the same layer are added. Two residuals that cancel leave the statement unexplained.
    """
    first, last = steps[0], steps[-1]
    totals = (first.from_total, last.to_total)
    stuck = [s for s in steps if s.residual is None]
    if stuck:
        worst = min(stuck, key=lambda s: STATES_WITHOUT_RESIDUAL.index(s.state))
        return block_statement(first.from_, last.to, worst.state, worst.reason, totals)
    lines = net_lines(line for step in steps for line in step.adjustments)
    made = close_statement(first.from_, last.to, totals, lines, _by_layer(r for step in steps for r in step.residuals))
    broken = next((s for s in steps if s.state is State.UNEXPLAINED), None)
    return made if broken is None else replace(made, state=State.UNEXPLAINED, reason=broken.reason)


def _by_layer(residuals: Iterable[Residual]) -> list[Residual]:
    residuals_by_layer: dict[str, Residual] = {}
    for r in residuals:
        before = residuals_by_layer.get(r.layer)
        residuals_by_layer[r.layer] = r if before is None else replace(before, amount=before.amount + r.amount)
    return list(residuals_by_layer.values())


def net_lines(lines: Iterable[Adjustment]) -> tuple[Adjustment, ...]:
    """Merge lines of the same cause and layer, so that no two of them offset each other; lines that cancel vanish."""
    groups: dict[tuple[Cause, str], list[Adjustment]] = {}
    for line in lines:
        groups.setdefault((line.cause, line.layer), []).append(line)
    netted = []
    for (cause, layer), members in groups.items():
        amount = sum(m.amount for m in members)
        if amount:
            ops = "; ".join(dict.fromkeys(m.op for m in members if m.op))
            counters = dict.fromkeys(m.counter for m in members)
            proofs = tuple(e for m in members for e in m.evidence)
            counter = next(iter(counters)) if len(counters) == 1 else ""
            netted.append(Adjustment(cause, layer, ops, counter, amount, proofs))
    return tuple(sorted(netted, key=lambda a: ORDER[a.cause]))


def statement_between(result: RunResult, from_: str, to: str) -> Statement | None:
    """The run's own statement if it has one, else a chain of its statements; None if a name is not in this run."""
    by_ends = {(s.from_, s.to): s for s in result.statements}
    by_ends |= {(s.to, s.from_): reverse_statement(s) for s in result.statements if (s.to, s.from_) not in by_ends}
    if (from_, to) in by_ends:
        return by_ends[from_, to]
    homes = {x.counter: x.framework for x in result.ledgers} | {t.name: t.framework for t in result.traces}
    names = {t.framework: t.name for t in result.traces}
    if from_ not in homes or to not in homes or from_ == to:
        return None
    stops = list(dict.fromkeys((from_, names[homes[from_]], names[homes[to]], to)))
    steps = [by_ends.get(ends) for ends in pairwise(stops)]
    known = [step for step in steps if step is not None]
    return chain_statements(known) if len(known) == len(steps) else None
