"""torch_flops itself, in the environment that it needs: products at 2K - 1, numbers, and what it stops at."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause, State
from tests.adapters.counters.in_environment import closes, settled

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

LINEAR = 2 * 4 * (2 * 3 - 1)
RAN = 2 * 4 * 2 * 3
FIRST, OUTSIDE = Cause.FIRST_ADD, Cause.OUTSIDE_CONVENTION
ENCODER = 5 * 2 * (4 * 4 * 4 + 2 * 4 * 8) + 2 * 5 * 5 * 2 * 4
"""Four projections and two linear layers of 5 tokens, and both products of 2 heads of 2."""

CASES = {
    # name: (FLOPs that it reports, FLOPs of the products that ran, causes)
    "biased": (LINEAR + 8 + 8, RAN, {FIRST, OUTSIDE}),
    # one of the product of two sizes
    "numbers": (LINEAR + 1, RAN, {FIRST, Cause.INTEGER_OP}),
    "on_weights": (LINEAR + 8 + 8, RAN, {FIRST, OUTSIDE}),
    "many": (LINEAR + 8 + 8, RAN, {FIRST, OUTSIDE}),
    # the layer of attention counts nothing; the head takes 2 * 4 - 1 and a bias of each of 5 tokens
    "held": (5 * 8, ENCODER + 5 * 8, {Cause.OP_NOT_COUNTED, FIRST, OUTSIDE}),
}
STOPS = {
    "without_weights": "it takes the device from the first weight",
    "plain_norm": "'BatchNorm1d' object has no attribute 'elementwise_affine'",
    "branching": "symbolically traced variables cannot be used as inputs to control flow",
}


@pytest.mark.parametrize("name", CASES)
def test_it_reports_what_the_rules_say_and_closes(name: str) -> None:
    statement = closes("torch_flops", "torch_flops", f"tests.adapters.counters.torch_flops_nets:{name}", CASES[name])
    assert statement.from_total == CASES[name][0]


@pytest.mark.parametrize("name", STOPS)
def test_what_it_stops_at_is_its_own_reason(name: str) -> None:
    ledger, _ = settled("torch_flops", "torch_flops", f"tests.adapters.counters.torch_flops_nets:{name}")
    assert ledger.state is State.NOT_COMPARABLE
    assert STOPS[name] in ledger.reason
