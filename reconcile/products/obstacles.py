"""Why a reconciliation is not clean: incomplete traces, residuals, unexplained statements, unchecked entries, broken rules.

The gallery and sweeps list them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..core.causes import State
from ..engine.answer import Answer
from ..engine.settle import counters_that_cannot_see

CLEAN = (State.EQUAL, State.EXPLAINED)


def list_obstacles(results: Mapping[str, Answer]) -> Iterable[str]:
    """A sentence for each reason why one of these answers, by name, is not clean; none if all are."""
    for name, result in results.items():
        for trace in result.traces:
            if not trace.complete:
                yield f"{name}: {trace.name}: {trace.reason}"
        unseeing = counters_that_cannot_see(result.ledgers)
        for statement in result.statements:
            if statement.residual or (statement.state not in CLEAN and not unseeing & {statement.from_, statement.to}):
                yield f"{name}: {statement.from_} to {statement.to}: {statement.state.value}: {statement.reason}"
        for ledger in result.ledgers:
            if ledger.unchecked or ledger.mismatches:
                broken = len(ledger.mismatches)
                yield f"{name}: {ledger.counter}: {ledger.unchecked} entries unchecked, {broken} rules broken"
