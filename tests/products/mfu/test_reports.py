"""How many of the published utilisations the tool explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.products.mfu import table_report
from reconcile.products.mfu.claims import read_claims
from reconcile.products.mfu.table_verdicts import State, Verdict, verdicts

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parents[3] / "reports" / "mfu"


@pytest.fixture(scope="module")
def found() -> list[Verdict]:
    return verdicts(read_claims(HERE / "claims.csv"))


def test_most_rows_that_state_enough_are_explained(found: list[Verdict]) -> None:
    """At least 95 %; every other row has its factor or its reason."""
    stated = table_report.select_complete(found)
    assert len(stated) >= 300
    assert sum(v.state is State.EXPLAINED for v in stated) >= 0.95 * len(stated)
    assert [v.row.key for v in found if v.state is State.CONTRADICTED and (v.factor is None or not v.reason)] == []
    assert [v.row.key for v in found if v.state in (State.TOO_LITTLE, State.NOT_READ) and not v.reason] == []
