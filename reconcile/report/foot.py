"""Footing: before a report is written, ``check`` adds up every statement, ledger and table of layers and compares the totals."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.causes import State
from ..core.results import Statement
from ..engine.answer import Answer

BLANK = frozenset((State.NOT_COMPARABLE, State.FAILED, State.SKIPPED))


def check(result: Answer) -> None:
    """Raise ValueError, which names every sum that is wrong, if there is one: a defect of the engine, never of a model."""
    faults = [*(f for s in result.statements for f in _statement(s)), *_ledgers(result), *_layers(result)]
    if faults:
        raise ValueError("the books do not add up: " + "; ".join(faults))


def _statement(s: Statement) -> Iterator[str]:
    name = f"{s.from_} to {s.to}"
    if s.from_total is None or s.to_total is None or s.residual is None:
        if s.state not in BLANK:
            yield f"{name} is {s.state.value} without totals"
        return
    total = s.from_total + sum(a.amount for a in s.adjustments) + s.residual
    if total != s.to_total:
        yield f"{name}: {s.from_total} with its lines is {total}, not {s.to_total}"
    if sum(r.amount for r in s.residuals) != s.residual:
        yield f"{name}: the residuals per layer are not the residual {s.residual}"
    if s.state in (State.EQUAL, State.EXPLAINED) and (s.residual or s.residuals):
        yield f"{name} is {s.state.value} with a residual"


def _ledgers(result: Answer) -> Iterator[str]:
    for ledger in result.ledgers:
        if ledger.total is None:
            if ledger.state not in BLANK:
                yield f"{ledger.counter} is {ledger.state.value} without a total"
        elif sum(e.value for e in ledger.entries) != ledger.total:
            yield f"the entries of {ledger.counter} do not add up to its total {ledger.total}"


def _layers(result: Answer) -> Iterator[str]:
    if not result.layers:
        return
    sums: dict[str, int] = {}
    for row in result.layers:
        for counter, value in row.counters.items():
            sums[counter] = sums.get(counter, 0) + value
    for ledger in result.ledgers:
        total = ledger.normalised_total
        if total is not None and sums.get(ledger.counter, 0) != total:
            yield f"the layers of {ledger.counter} add up to {sums.get(ledger.counter, 0)}, not {total}"
