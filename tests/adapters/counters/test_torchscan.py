"""torchscan itself, in the environment that it needs: both of its numbers, and what it counts without looking."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause, State
from tests.adapters.counters.in_environment import closes, settled

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

FIRST, OUTSIDE, DIFFERS = Cause.FIRST_ADD, Cause.OUTSIDE_CONVENTION, Cause.FORMULA_DIFFERS
MISSED, UNSEEN = Cause.OP_NOT_COUNTED, Cause.CALL_NOT_SEEN
BESIDE = 2 * 2 * 4 * 3 + 2 * 2 * 5 * 4
WIDE = 10 * 6 * 3 * 2
"""Of each of 10 positions of the output 6 channels, which take 3 channels x 2: 5 positions of the input have these products."""
LINEAR = 4 * 5 * 4 * (2 * 4 - 1 + 1)
SCORES, OUT = 2 * 5 * 5, 5 * 4
ATTENTION = LINEAR + SCORES * (2 * 2 - 1) + OUT * (2 * 5 - 1) + (1 + OUT) + (3 * SCORES - 2 * 5) + 2 * SCORES
"""Four projections with biases, both products, the scale, the softmax, a mask and a mean over heads."""
ATTENDED = 4 * 2 * 5 * 4 * 4 + 2 * 2 * SCORES * 2

CASES = {
    # counter and network: (what it reports, FLOPs of the products that ran, causes)
    ("torchscan", "beside"): (2 * 4 * (2 * 3 - 1 + 1) + 8, BESIDE, {UNSEEN, FIRST, OUTSIDE}),
    ("torchscan@macs", "beside"): (2 * 4 * 3, BESIDE, {UNSEEN}),
    ("torchscan", "transposed"): (8 + 10 * 6 * (2 * 3 * 2 - 1), WIDE, {FIRST, DIFFERS, OUTSIDE}),
    ("torchscan@macs", "transposed"): (4 + WIDE, WIDE, {DIFFERS, OUTSIDE}),
    ("torchscan", "parametrized"): (0, 2 * 2 * 4 * 3, {MISSED}),
    ("torchscan", "attention"): (ATTENTION, ATTENDED, {FIRST, OUTSIDE}),
    ("torchscan@macs", "attention"): (0, ATTENDED, {MISSED}),
}


@pytest.mark.parametrize(("counter", "name"), CASES)
def test_it_reports_what_the_rules_say_and_closes(counter: str, name: str) -> None:
    closes("torchscan", counter, f"tests.adapters.counters.torchscan_nets:{name}", CASES[counter, name])


def test_a_model_that_is_a_transformer_is_beyond_the_rules() -> None:
    ledger, _ = settled("torchscan", "torchscan", "tests.adapters.counters.torchscan_nets:whole")
    assert ledger.state is State.NOT_COMPARABLE
    assert "put it into a module" in ledger.reason
