"""The page of the pairs: what its cells say of results made here, and that the committed page has every pair of today."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reconcile.core.causes import Cause
from reconcile.core.number_format import number
from tests.matrix.pairs_page import NAMED, Row, finding, page, residual, summary
from tests.matrix.transformers_models import ENCODER, TWINS
from tests.matrix.transformers_pairs import COUNTERS, PAGE, environment

TOTAL = 4_321
EQUAL = Row("Same", {"tf": TOTAL, "torch": TOTAL}, dict.fromkeys(COUNTERS, TOTAL), (0, 0, 0), layers=7)
OTHER = replace(
    EQUAL,
    pair="Other",
    work={"tf": TOTAL, "torch": TOTAL + 5},
    uneven=("head 1 and 6",),
    causes={Cause.REAL_WORK_DIFFERS: 5},
)
SWAPPED = replace(EQUAL, pair="Swapped", uneven=("a 1 and 2", "b 2 and 1"), causes={Cause.REAL_WORK_DIFFERS: 0})
LEFT = replace(EQUAL, pair="Left", residuals=(0, -3, 0), reasons=("flop_counter to trace@torch: ran other ops",))
UNKNOWN = replace(
    LEFT, pair="Unknown", work={"tf": None, "torch": TOTAL}, residuals=(None, 0), reasons=("trace@tf: no shape",)
)
REFUSED = Row("Refused", reasons=("refused: no such class",))


@pytest.mark.parametrize(
    ("row", "said", "left"),
    [
        (EQUAL, "equal", "0"),
        (OTHER, "differs by real-work-differs +5; head 1 and 6", "0"),
        (SWAPPED, "differs by real-work-differs 0; a 1 and 2; b 2 and 1", "0"),
        (LEFT, "flop_counter to trace@torch: ran other ops", "-3"),
        (UNKNOWN, "trace@tf: no shape", "unknown"),
        (REFUSED, "refused: no such class", "unknown"),
        (Row("Nothing"), "nothing was compared", "unknown"),
    ],
    ids=lambda value: value.pair if isinstance(value, Row) else "",
)
def test_a_row_says_equal_only_of_equal_work_without_a_residual(row: Row, said: str, left: str) -> None:
    assert (finding(row), residual(row), row.equal) == (said, left, row is EQUAL)
    assert row.in_order is (row in (EQUAL, OTHER, SWAPPED))


def test_layers_that_are_too_many_to_name_are_counted() -> None:
    many = replace(OTHER, uneven=tuple(f"layer{i}" for i in range(NAMED + 2)))
    assert finding(many).endswith(f"layer{NAMED - 1}; and 2 more")


def test_the_summary_counts_every_row_once() -> None:
    rows = (EQUAL, OTHER, SWAPPED, LEFT, UNKNOWN, REFUSED)
    assert summary(rows) == (
        "6 pairs: 1 with equal work in every layer, 2 that differ by named causes, 3 not in order."
    )


def test_the_page_has_every_cell() -> None:
    text = page((EQUAL, UNKNOWN), COUNTERS, "the environment", {"torch": "2.0", "tensorflow": "3.0"})
    total = number(TOTAL)
    assert text.splitlines()[-2:] == [
        f"| Same | {total} | {total} | equal | {total} | {total} | 0 | 7 of 7 |",
        f"| Unknown | unknown | {total} | trace@tf: no shape | {total} | {total} | unknown | 7 of 7 |",
    ]
    assert "the environment" in text
    assert "tensorflow 3.0, torch 2.0." in text


STALE = "reports/pairs.md is stale: run `make pairs` and commit what changed"


def committed() -> list[list[str]]:
    """The cells of the committed page, a list per pair."""
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \w+(Model|For\w+) \|", line)]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_committed_page_has_the_pairs_of_today() -> None:
    rows = committed()
    assert [row[0] for row in rows] == list(TWINS), STALE
    assert [row[0] for row in rows if row[3] == "equal" and row[1] != row[2]] == []
    assert [row[0] for row in rows if (row[6] == "0") != (row[3] == "equal" or row[3].startswith("differs"))] == []
    equal = len([row for row in rows if row[3] == "equal"])
    assert f"{len(TWINS)} pairs: {equal} with equal work in every layer" in PAGE.read_text(), STALE


def test_the_committed_page_says_what_the_page_says_today() -> None:
    """All but the sum and the versions that ran."""
    today = page((), COUNTERS, environment().title, {}).splitlines()
    ran = [line for line in today if line == summary(()) or line.startswith("[huggingface.toml]")]
    assert [line for line in today if line not in (*ran, *PAGE.read_text().splitlines())] == [], STALE


WIDTH, VOCABULARY, LABELS = ENCODER["hidden_size"], ENCODER["vocab_size"], 2
DISTILBERT, T5 = TWINS["DistilBertForQuestionAnswering"].settings, TWINS["T5Model"].settings
