"""Published formulas (``formula:6n``) reconciled with a step that ran: what ``reconcile.count``'s ``Step.against`` returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ...adapters.shared.refusal import BeyondCounter, FactoryError
from ...api.results import Run
from ...core.causes import State
from ...core.errors import UsageError, unknown
from ...core.escaping import escape_lines
from ...core.number_format import format_signed, number
from ...core.records import Ledger
from ...core.registry import known_counters
from ...engine.breakdown import RESIDUAL
from ...engine.reconcile import Missing
from ...engine.settle import Collected


class Against(Run):
    """A ``Run`` whose counters are the formulas; printed, it shows the statement of each."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = []
        for counter in self.result.verdict.counters:
            statement = counter.statement
            if statement is None or statement.from_total is None or statement.to_total is None:
                lines += [f"{counter.ledger.counter}: {counter.ledger.reason or counter.state.value}", ""]
                continue
            rows = [(counter.ledger.counter, number(statement.from_total))]
            rows += [(f"  {cause}", format_signed(amount)) for cause, amount in counter.causes if cause != RESIDUAL]
            rows += [(f"  {RESIDUAL}", format_signed(sum(r.amount for r in statement.residuals)))]
            rows += [("what ran", number(statement.to_total))]
            width = max(len(amount) for _, amount in rows)
            lines += [*(f"{name:<36} {amount:>{width}}" for name, amount in rows), ""]
        return escape_lines("\n".join(lines).rstrip("\n"))


def statements(base: Collected, recorded_model: Callable[[], Any], names: Sequence[str]) -> Collected:
    """The step's trace with a ledger of each formula; ``recorded_model`` makes the model that a formula reads. Raises UsageError
    as ``Step.against`` does."""
    known = {name: c for name, c in known_counters().items() if c.quoted}
    if not names:
        raise UsageError('name a formula, such as against("formula:6n"): `reconcile explain counters` lists them.')
    for name in names:
        if name not in known:
            raise unknown("formula", name, known)
    ledgers: list[Ledger | Missing] = []
    for name in names:
        counter = known[name]
        try:
            model = recorded_model()
            ledgers.append(import_module(f"{counter.module}.capture").capture(name, model))
        except FactoryError as error:
            raise UsageError(str(error)) from error
        except BeyondCounter as error:
            framework = counter.framework
            ledgers.append(Missing(name, framework, State.NOT_COMPARABLE, str(error), counter.unit, model.device))
    return Collected(base.meta, base.traces, tuple(ledgers))
