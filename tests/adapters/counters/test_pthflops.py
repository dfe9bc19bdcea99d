"""pthflops itself, in the environment that it needs: products, a transposed convolution, and tuples that it takes for counts."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause, State
from tests.adapters.counters.in_environment import closes, settled

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

OUTSIDE, DIFFERS = Cause.OUTSIDE_CONVENTION, Cause.FORMULA_DIFFERS
CASES = {
    # name: (what it reports, multiply-adds that ran, causes)
    "linear": (2 * 4 * 3 + 4 + 2 * 8, 2 * 4 * 3, {OUTSIDE}),
    # 10 positions of the output instead of 5 of the input
    "transposed": (10 * 2 * 6 * 3, 5 * 2 * 6 * 3, {DIFFERS}),
    "two": (2 * 4 * 3 + 4 + 2 * 8, 2 * 4 * 3, {OUTSIDE}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_reports_what_the_rules_say_and_closes(name: str) -> None:
    reported, ran, causes = CASES[name]
    statement = closes(
        "pthflops", "pthflops", f"tests.adapters.counters.pthflops_nets:{name}", (reported, 2 * ran, causes)
    )
    assert statement.from_total == 2 * reported


def test_a_tuple_of_a_method_is_its_own_reason() -> None:
    ledger, _ = settled("pthflops", "pthflops", "tests.adapters.counters.pthflops_nets:sized")
    assert ledger.state is State.NOT_COMPARABLE
    assert "takes a tuple" in ledger.reason or "stops on this model" in ledger.reason
