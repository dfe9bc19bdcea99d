"""mmengine itself, in the environment that it needs: a product with a vector, at which fvcore stops, and a padding of "same"."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause
from tests.adapters.counters.in_environment import closes

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

CASES = {
    # name: (MACs that it reports, multiply-adds that ran, causes)
    "vectors": (2 * 3 + 2 * 3 + 3, 2 * 3 + 2 * 3 + 3, set()),
    "same": (0, 4 * 5 * 3 * 3, {Cause.OP_NOT_COUNTED}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_reports_what_the_rules_say_and_closes(name: str) -> None:
    reported, ran, causes = CASES[name]
    statement = closes(
        "mmengine", "mmengine", f"tests.adapters.counters.mmengine_nets:{name}", (reported, 2 * ran, causes)
    )
    assert statement.from_total == 2 * reported
