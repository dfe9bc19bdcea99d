"""torchstat itself, in the environment that it needs: both of its numbers, and the calls that it forgets."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause, State
from tests.adapters.counters.in_environment import closes, settled

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

FIRST, OUTSIDE, DIFFERS = Cause.FIRST_ADD, Cause.OUTSIDE_CONVENTION, Cause.FORMULA_DIFFERS
MISSED, UNSEEN, ONCE = Cause.OP_NOT_COUNTED, Cause.CALL_NOT_SEEN, Cause.LOOP_COUNTED_ONCE
OUT = 4 * 7 * 5
"""Outputs of a convolution of 3 x 3 on 4 channels, of one sample."""
REUSED = 2 * 2 * (3 * OUT * 4 * 9 + 4 * 7 * 5 * 6)
INS = 6 * 5 * 4
"""Inputs of a transposed convolution of 2 x 2, each of which meets 4 / 2 channels."""

CASES = {
    # counter and network: (what it reports, FLOPs of the products that ran, causes); three calls of one layer are its last
    ("torchstat", "reused"): (2 * OUT * (4 * 9 + 1), REUSED, {ONCE, UNSEEN, OUTSIDE}),
    ("torchstat@madd", "reused"): (OUT * (2 * 4 * 9 - 1 + 1), REUSED, {ONCE, UNSEEN, FIRST, OUTSIDE, DIFFERS}),
    ("torchstat", "paired"): (0, 2 * 2 * 5 * (3 * 4 + 4), {MISSED}),
    ("torchstat@madd", "paired"): (5 * (2 * (3 * 4 + 4) - 1), 2 * 2 * 5 * (3 * 4 + 4), {FIRST, DIFFERS}),
    ("torchstat", "raised"): (2 * 10 * 8, 0, {OUTSIDE}),  # and not for each of 6 channels
    ("torchstat@madd", "raised"): (0, 0, set()),
    ("torchstat", "transposed"): (0, 2 * 2 * INS * 2 * 4, {MISSED}),
    ("torchstat@madd", "transposed"): (5 * 4 * 4 * (2 * 3 * 4 - 1 + 1), 2 * 2 * INS * 2 * 4, {FIRST, DIFFERS, OUTSIDE}),
    ("torchstat", "dense"): (2 * 3 * 4, 2 * 2 * 3 * 4, set()),
    ("torchstat@madd", "dense"): (4 * (2 * 3 - 1), 2 * 2 * 3 * 4, {FIRST, DIFFERS}),
    ("torchstat", "mine"): (2 * 3 * 16 * (3 + 1), 2 * 2 * 3 * 16 * 3, {OUTSIDE}),  # it goes by isinstance
}


@pytest.mark.parametrize(("counter", "name"), CASES)
def test_it_reports_what_the_rules_say_and_closes(counter: str, name: str) -> None:
    closes("torchstat", counter, f"tests.adapters.counters.torchstat_nets:{name}", CASES[counter, name])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "shrinking",
            "it keeps the last call of each module, and torch.nn.modules.conv.Conv2d is called on several shapes",
        ),
        ("of_steps", "compute_madd.py:117"),
        ("derived", "which calls itself without end"),
        ("recurrent", "one here returns a tuple"),
    ],
)
def test_a_model_that_it_cannot_count_has_its_reason(name: str, said: str) -> None:
    ledger, _ = settled("torchstat", "torchstat", f"tests.adapters.counters.torchstat_nets:{name}")
    assert ledger.state is State.NOT_COMPARABLE
    assert said in ledger.reason
