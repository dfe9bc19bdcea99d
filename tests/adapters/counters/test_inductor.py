"""inductor's count of a model's graph: closed forms of what it reports, and where the rest is."""

from __future__ import annotations

import pytest

import reconcile
from reconcile.core.causes import Cause, State
from reconcile.core.results import LedgerResult, Statement

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow]

MISSED, UNSEEN = Cause.OP_NOT_COUNTED, Cause.CALL_NOT_SEEN
CONVOLVED = 2 * 6 * 4 * 4 * (2 * 9)
"""Each of 2 x 6 x 4 x 4 outputs takes 2 channels x 9."""
TRANSPOSED = 2 * 6 * 4 * 4 * (4 * 4)
"""Each of as many inputs meets 4 channels x 4."""
LAYER, PRODUCT = 2 * 4 * 8 * 8 * 8, 2 * 4 * 8 * 8 * 8
PROJECTED, ATTENDED = 2 * 3 * 5 * 4 * 4, 2 * 3 * 2 * 5 * 5 * 4
BEFORE, BETWEEN, AFTER = 2 * 5 * 3 * 4, 2 * 5 * 4 * 6, 2 * 5 * 6 * 5

CASES = {
    # network: (multiply-adds that it counts, that ran, causes)
    "mixed": (CONVOLVED + TRANSPOSED + 3 * LAYER + PRODUCT, CONVOLVED + TRANSPOSED + 3 * LAYER + PRODUCT, set()),
    "projected": (PROJECTED, PROJECTED + ATTENDED, {MISSED}),
    "broken": (BEFORE + AFTER, BEFORE + BETWEEN + AFTER, {UNSEEN}),
    "dots": (0, 2 * 3, {MISSED}),
}


def settled(name: str) -> tuple[LedgerResult, Statement]:
    factory = f"tests.adapters.counters.small_nets:{name}"
    result = reconcile.run(torch=factory, counters=("inductor",)).result
    (ledger,), (statement,) = result.ledgers, result.statements
    return ledger, statement


@pytest.mark.parametrize("name", CASES)
def test_it_reports_what_its_graph_has_and_closes(name: str) -> None:
    counted, ran, causes = CASES[name]
    ledger, statement = settled(name)
    assert (ledger.total, ledger.mismatches, ledger.unchecked) == (2 * counted, (), 0), ledger.reason
    assert (statement.to_total, statement.residual) == (2 * ran, 0)
    assert {line.cause for line in statement.adjustments} == causes


def test_a_model_without_a_graph_has_its_reason() -> None:
    ledger, _ = settled("recurrent")
    assert ledger.state is State.NOT_COMPARABLE
    assert "no graph of this model" in ledger.reason
