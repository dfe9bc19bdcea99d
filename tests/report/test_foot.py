"""Books that do not add up are refused, whatever the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconcile.core.causes import State
from reconcile.core.results import LedgerResult, Statement
from reconcile.engine.answer import Answer
from reconcile.report import foot, reports
from tests.report import samples


@pytest.mark.parametrize("sample", samples.SAMPLES)
def test_the_samples_foot(sample: Callable[[], Answer]) -> None:
    foot.check(sample())


def with_statement(change: Callable[[Statement], Statement]) -> Answer:
    result = samples.clean()
    return replace(result, statements=tuple(change(s) if s.from_ == "thop" else s for s in result.statements))


def with_ledger(change: Callable[[LedgerResult], LedgerResult]) -> Answer:
    result = samples.clean()
    return replace(result, ledgers=tuple(change(x) if x.counter == "thop" else x for x in result.ledgers))


def bent(statement: Statement) -> Statement:
    (line,) = statement.adjustments
    return replace(statement, adjustments=(replace(line, amount=line.amount + 1),))


FAULTS = {
    "a line off by one": with_statement(bent),
    "a total off by one": with_statement(lambda s: replace(s, to_total=(s.to_total or 0) + 1)),
    "a residual nobody placed": with_statement(lambda s: replace(s, to_total=(s.to_total or 0) + 1, residual=1)),
    "a blank without a reason": with_statement(lambda s: replace(s, to_total=None)),
    "an entry missing": with_ledger(lambda x: replace(x, entries=x.entries[1:])),
    "a total missing": with_ledger(lambda x: replace(x, total=None)),
    "a layer missing": replace(samples.clean(), layers=samples.clean().layers[1:]),
    "a residual called explained": replace(
        samples.unexplained(),
        statements=tuple(replace(s, state=State.EXPLAINED) for s in samples.unexplained().statements),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_before_anything_is_rendered(fault: str) -> None:
    with pytest.raises(ValueError, match=r"the books do not add up: .*thop|dense"):
        reports.render(FAULTS[fault], ("json",))
