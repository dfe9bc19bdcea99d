"""How many of the published utilisations the tool explains."""

from __future__ import annotations

import csv
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


def test_every_explained_row_is_its_statement(found: list[Verdict]) -> None:
    """The rows of the largest source by hand: (6N + 12LhT) times tokens over devices and 312 TFLOP/s, times 4/3 in
    HFU with recomputation."""
    with (HERE / "claims.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    checked = 0
    for verdict in found:
        if not verdict.row.key.startswith("mosaic-a100") or verdict.state is not State.EXPLAINED:
            continue
        row = rows[verdict.row.key]
        work = 6 * int(row["params"]) + 12 * int(row["layers"]) * int(row["hidden"]) * int(row["seq"])
        tokens = float(row["tokens_per_second"] or 0) or float(row["tokens_per_second_per_device"]) * int(
            row["devices"]
        )
        share = 100 * tokens * work / (int(row["devices"]) * 312e12)
        if row["claimed_kind"] == "HFU" and row["recompute"] != "none":
            share *= 4 / 3
        assert share == pytest.approx(float(row["claimed"].rstrip("%")), rel=2e-3), verdict.row.key
        checked += 1
    assert checked > 50
