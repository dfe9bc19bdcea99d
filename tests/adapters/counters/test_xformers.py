"""xformers' profiler itself, in the environment that it needs: what it adds to torch.profiler's FLOPs, and what it leaves out."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause
from tests.adapters.counters.in_environment import closes

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

MISSED, DIFFERS, OUTSIDE = Cause.OP_NOT_COUNTED, Cause.FORMULA_DIFFERS, Cause.OUTSIDE_CONVENTION
PROJECTIONS = 2 * 10 * 4 * (3 * 4 + 4)
"""Of attention 4 wide on 2 x 5 positions."""

CASES = {
    # network: (what it reports, FLOPs of the products that ran, causes)
    "broadcast": (3, 0, {OUTSIDE}),
    "of_whole_numbers": (0, 0, set()),  # torch.profiler counts 6 here
    "products_of_whole_numbers": (0, 2 * 24, {MISSED}),
    "half": (2 * 24, 2 * 24, set()),  # of bfloat16
    "attends": (6 * 400, 6 * 400, set()),
    "causal": (6 * 200, 6 * 400, {DIFFERS}),
    # 2 queries, 5 keys: 2 * 2 * 3 * 4 + 2 * 3 * 3 * 4 of the keys before, and half of 2 * 2 * 2 * 8
    "causal_of_more": (6 * (48 + 72 + 32), 6 * 2 * 2 * 5 * 8, {DIFFERS}),
    "causal_of_one": (5 * 5 * 7, 2 * 5 * 5 * 7, {DIFFERS, OUTSIDE}),
    "grouped": (6 * 400, 12 * 400, {DIFFERS}),
    "wide": (6 * 2 * 25 * 11, 6 * 2 * 25 * 11, set()),
    # the scores of 2 heads of 2, scaled before their product
    "in_inference": (PROJECTIONS + 2 * 2 * 2 * 25 * 4 + 2 * 5 * 4, PROJECTIONS + 2 * 2 * 2 * 25 * 4, {OUTSIDE}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_reports_what_the_rules_say_and_closes(name: str) -> None:
    closes("xformers", "xformers", f"tests.adapters.counters.xformers_nets:{name}", CASES[name])
