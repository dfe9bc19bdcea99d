"""The outcome of a cell, as it is saved: the numbers of its run as JSON data, the same whenever and wherever it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...core.causes import State
from ...core.errors import EXIT_USAGE
from ...core.results import LedgerResult, Statement, TraceResult
from ...engine.answer import Answer
from ...report.json_text import fields_of, plain
from ..obstacles import list_obstacles


def outcome_of(name: str, result: Answer | None, refusals: Mapping[str, str]) -> dict[str, Any]:
    """A run as JSON data; ``refusals`` (framework -> why) are those in which the model's own code would not work."""
    if result is None:
        return {**refused_outcome(name, refusals), "exit_code": EXIT_USAGE}
    return {
        "name": name,
        "refused": dict(sorted(refusals.items())),
        "exit_code": result.exit_code,
        "convention": result.convention.name,
        "pass": result.pass_,
        "params": plain(result.params),
        "inputs": dict(result.inputs),
        "environment": dict(result.environment),
        "traces": [_trace(trace, result.convention.name) for trace in result.traces],
        "counters": [_counter(result, ledger) for ledger in result.ledgers],
        "between": _between(result),
        "open": list(list_obstacles({result.convention.name: result})),
    }


def refused_outcome(name: str, refusals: Mapping[str, str]) -> dict[str, Any]:
    """The outcome of a model that could not be run; ``refusals`` by framework, '' for all."""
    return {"name": name, "refused": dict(refusals), "traces": [], "counters": [], "between": [], "open": []}


def _trace(trace: TraceResult, convention: str) -> dict[str, Any]:
    return {
        **fields_of(trace, "framework state reason"),
        "work": trace.totals.get(convention),
        "totals": dict(trace.totals),
        "unknown": dict(sorted(Counter(gap.op for gap in trace.unknown).items())),
        "unweighed": dict(sorted(Counter(gap.op for gap in trace.unweighed).items())),
        "notes": list(trace.notes),
    }


def _counter(result: Answer, ledger: LedgerResult) -> dict[str, Any]:
    ends = (ledger.counter, f"trace@{ledger.framework}")
    statement = next((s for s in result.statements if (s.from_, s.to) == ends), None)
    return {
        **fields_of(ledger, "counter framework unit"),
        "reported": ledger.total,
        "normalised": ledger.normalised_total,
        **_settle_statement(statement, ledger.state, ledger.reason),
    }


def _between(result: Answer) -> list[dict[str, Any]]:
    """The statements from trace to trace."""
    names = [trace.name for trace in result.traces]
    return [
        {"from": s.from_, "to": s.to, **_settle_statement(s, s.state, s.reason)}
        for s in result.statements
        if s.from_ in names and s.to in names
    ]


def _settle_statement(statement: Statement | None, state: State, reason: str) -> dict[str, Any]:
    if statement is None:
        return {"state": state.value, "reason": reason, "work": None, "residual": None, "causes": {}}
    return {
        "state": statement.state.value,
        "reason": statement.reason,
        "work": statement.to_total,
        "residual": statement.residual,
        "causes": {cause.value: amount for cause, amount in statement.by_cause().items()},
    }
