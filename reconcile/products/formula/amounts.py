"""``amounts``: FLOPs of one run by name (trace, counter or cause), as a total, by layer and by op, for interpolation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...core.registry import frameworks, known_counters
from ...core.results import LedgerResult, Statement, TraceResult
from ...engine.answer import Answer

CAUSE = "cause:"
RESIDUAL = "residual"
"""Replaces the cause's name where the amount is unexplained."""


@dataclass(slots=True)
class Amounts:
    """FLOPs under the run's convention: in all, by layer, and by (layer, op). ``reason`` says why there is no total."""

    total: int | None = 0
    reason: str = ""
    layers: dict[str, int] = field(default_factory=dict)
    ops: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, layer: str, op: str, amount: int) -> None:
        """Add an amount to a layer and to one of its ops."""
        self.layers[layer] = self.layers.get(layer, 0) + amount
        self.ops[layer, op] = self.ops.get((layer, op), 0) + amount


def amounts(result: Answer) -> dict[str, Amounts]:
    """``trace@torch``, every counter, and ``cause:NAME:COUNTER``: the amount to add to that counter to get the work that ran."""
    named = {trace.name: _ran(trace, result) for trace in result.traces}
    named |= {ledger.counter: _reported_amounts(ledger, result) for ledger in result.ledgers}
    for statement in result.statements:
        if _to_the_work(statement):
            named.update(_causes(statement))
    return named


def _ran(trace: TraceResult, result: Answer) -> Amounts:
    made = Amounts(trace.totals.get(result.convention.name) if trace.complete else None, trace.reason)
    for row in trace.rows:
        made.add(row.layer, row.op, result.convention.flops(row.work))
    for unknown in trace.unknown:
        made.layers.pop(unknown.layer, None)
    return made


def _reported_amounts(ledger: LedgerResult, result: Answer) -> Amounts:
    made = Amounts(ledger.normalised_total, ledger.reason)
    if ledger.normalised_total is not None:
        made.layers = {
            row.layer: row.counters[ledger.counter] for row in result.layers if ledger.counter in row.counters
        }
    for entry in ledger.entries:
        made.ops[entry.layer, entry.op] = made.ops.get((entry.layer, entry.op), 0) + entry.value
    return made


def _to_the_work(statement: Statement) -> bool:
    """Whether a statement leads from a counter to its own trace, or from trace to trace."""
    traces = {record.trace for record in frameworks().values()}
    counter = known_counters().get(statement.from_)
    own = frameworks()[counter.framework].trace if counter is not None else None
    return statement.is_closed and statement.to in (traces if statement.from_ in traces else {own})


def _causes(statement: Statement) -> Mapping[str, Amounts]:
    lines: Iterable[tuple[str, str, str, int]] = [
        *((line.cause.value, line.layer, line.op, line.amount) for line in statement.adjustments),
        *((RESIDUAL, residual.layer, "", residual.amount) for residual in statement.residuals if residual.amount),
    ]
    named: dict[str, Amounts] = {}
    for cause, layer, op, amount in lines:
        made = named.setdefault(f"{CAUSE}{cause}:{statement.from_}", Amounts())
        assert made.total is not None
        made.total += amount
        made.add(layer, op, amount)
    return named


def find_closed(result: Answer) -> set[str]:
    """The counters and traces from which a statement leads to the work: a layer without a cause there needs none."""
    return {statement.from_ for statement in result.statements if _to_the_work(statement)}
