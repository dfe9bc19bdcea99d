"""The table of a sweep shows names as text: no formula of a spreadsheet, no control character."""

from __future__ import annotations

import pytest

from reconcile.core.conventions import ALL, MATMUL
from reconcile.products.sweep.engine import Finished
from reconcile.products.sweep.outcome import outcome_of
from reconcile.products.sweep.page import to_csv
from tests.core.test_table import FORMULA, ODD, SHOWN, cells
from tests.engine.test_completeness import K, M, N, settled


@pytest.mark.parametrize(
    ("name", "why", "shown"), [(FORMULA, "+1", (f"'{FORMULA}", "'+1")), (ODD, ODD, (SHOWN, SHOWN))]
)
def test_a_sweep_names_nothing_that_is_a_formula(name: str, why: str, shown: tuple[str, str]) -> None:
    outcome = {"name": name, "refused": {"": why}, "traces": [], "counters": [], "exit_code": 2}
    row = cells(to_csv([Finished(outcome, {})]))[1]
    assert (row[0], row[-1]) == shown


def test_a_sweep_has_a_total_where_there_is_one() -> None:
    for convention, total in ((MATMUL, 2 * M * K * N), (ALL, None)):
        row = outcome_of("m", settled(convention), {})["traces"][0]
        assert row["work"] == total
        assert row["totals"] == {"matmul": 2 * M * K * N}
