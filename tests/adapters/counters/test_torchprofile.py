"""torchprofile itself, in the environment that it needs: what its table lacks, and a transposed convolution."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause
from tests.adapters.counters.in_environment import closes

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

CASES = {
    # name: (MACs that it reports, multiply-adds that ran, causes)
    "products": (2 * 3, 2 * 3 * 5 + 2 * 3, {Cause.OP_NOT_COUNTED}),
    # one of two activations: 2 rows of 4
    "in_place": (2 * 3 * 4 + 2 * 4, 2 * 3 * 4, {Cause.OUTSIDE_CONVENTION}),
    # 10 positions of the output instead of 5 of the input
    "transposed": (10 * 6 * 3 * 2, 5 * 6 * 3 * 2, {Cause.FORMULA_DIFFERS}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_reports_what_the_rules_say_and_closes(name: str) -> None:
    reported, ran, causes = CASES[name]
    statement = closes(
        "torchprofile", "torchprofile", f"tests.adapters.counters.torchprofile_nets:{name}", (reported, 2 * ran, causes)
    )
    assert statement.from_total == 2 * reported
