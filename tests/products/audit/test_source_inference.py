"""What a source counts, by all of its rows: short figures of real totals, random tables, and rows that would explain themselves.

``totals.json`` has the readings of 110 models of timm: for each kind of reading its number. No model runs here."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.records import MAC
from reconcile.products.audit.claims import Claim
from reconcile.products.audit.source_inference import ODDS, OTHERS, row_of, source_of, weigh
from reconcile.products.audit.verdict import State, Verdict, by_chance, verdicts
from reconcile.products.decode.printed_figure import figure
from reconcile.products.decode.readings import PART, WORK, Candidate

TOTALS = json.loads(Path(__file__).with_name("totals.json").read_text())
PLAIN = "the work that ran, in MACs (half of matmul)"
NORMS = "the products that ran, and norms and pools as fvcore counts them"
LOST = "the products that ran without those of fused attention, and norms and pools as fvcore counts them"


def outcome(model: str) -> dict[str, Any]:
    """What a cell keeps of a model."""
    readings = []
    for kind, value in TOTALS["models"][model]:
        what, rank, unit, family = TOTALS["kinds"][kind]
        readings.append(
            {"value": value, "rank": rank, "unit": unit, "what": what, "how": "", "note": "", "family": family}
        )
    return {"refused": {}, "traces": [{"reason": ""}], "readings": readings}


OUTCOMES = {model: outcome(model) for model in TOTALS["models"]}


def value(model: str, what: str) -> int:
    """The number of this reading of the model."""
    return next(int(reading["value"]) for reading in OUTCOMES[model]["readings"] if reading["what"] == what)


def macs(model: str) -> int:
    return value(model, PLAIN)


def printed(number: float) -> str:
    return f"{number / 1e9:.2f}"


NORMED = [model for model, found in OUTCOMES.items() if any(one["what"] == NORMS for one in found["readings"])]


def audit(rows: list[tuple[str, str]], source: str = "a table") -> list[Verdict]:
    """The verdicts on models and their figures."""
    claims = [Claim(i, model, "", text, "GMACs", source) for i, (model, text) in enumerate(rows, 1)]
    return verdicts(claims, {claim.row: OUTCOMES[claim.model] for claim in claims}, {})[0]


def simplest(model: str, what: str) -> str:
    """The reading of a row that is printed as ``what`` is: the multiply-adds, if these have the same digits."""
    return PLAIN if printed(macs(model)) == printed(value(model, what)) else what


def dice_of(model: str, dice: random.Random) -> str:
    return printed(macs(model) * 10 ** dice.uniform(-1, 1))


def test_at_most_one_percent_of_random_tables_is_explained() -> None:
    """200 tables of ten rows: figures that mean nothing, printed to the second decimal of a billion."""
    dice, names = random.Random(36), list(OUTCOMES)
    explained = 0
    for _ in range(200):
        found = audit([(model, dice_of(model, dice)) for model in dice.choices(names, k=10)])
        explained += sum(v.state is State.EXPLAINED for v in found)
        assert [v for v in found if v.known] == []
    assert explained <= 0.01 * 2_000


def test_random_rows_in_a_true_table_are_explained_no_more_often() -> None:
    dice = random.Random(37)
    true = [(model, printed(value(model, NORMS))) for model in NORMED]
    found = audit([*true, *((model, dice_of(model, dice)) for model in NORMED)])
    assert [v for v in found if not v.known] == []
    assert sum(v.state is State.EXPLAINED for v in found[len(true) :]) <= 0.03 * len(true)
    claims = [v.claim for v in found]
    hits, draws = by_chance(found, {claim.row: OUTCOMES[claim.model] for claim in claims}, 1000)
    assert hits <= 0.01 * draws


def test_short_figures_are_read_as_the_others_of_their_source() -> None:
    """Every model's total with norms, printed: those of one and two digits agree with no multiply-adds in part."""
    rows = [(model, printed(value(model, NORMS))) for model in NORMED]
    found = audit(rows)
    assert {v.state for v in found} == {State.EXPLAINED}
    wrong = [v.claim.model for v in found if v.best is None or v.best.what != simplest(v.claim.model, NORMS)]
    assert wrong == []
    others = f"as the other {len(rows) - 1:,} rows of this source"
    told = {(v.best.what, v.evidence) for v in found if v.best}
    assert told == {(NORMS, others), (PLAIN, f"also fits {NORMS}, {others}")}
    alone = [audit([row])[0] for row in rows]
    assert [v for v in alone if v.state is State.OPEN] != []
    assert {v.evidence for v in alone} == {""}


def test_a_source_whose_kernel_changed_is_split_by_the_evidence() -> None:
    """Half of the rows were printed by a release whose fused attention the counter does not see."""
    names = [m for m in OUTCOMES if any(TOTALS["kinds"][k][0] == LOST for k, _ in TOTALS["models"][m])]
    assert len(names) > 20
    claims = []
    for i, model in enumerate(names, 1):
        new = i % 2
        text = printed(value(model, LOST if new else NORMS))
        claims.append(Claim(i, model, "", text, "GMACs", f"a table, release {1 + new}"))
    found, sources = verdicts(claims, {claim.row: OUTCOMES[claim.model] for claim in claims}, {})
    assert {(one.source, one.what) for one in sources} == {("a table", NORMS), ("a table", LOST)}
    for v in found:
        assert v.best is not None
        assert v.best.what == simplest(v.claim.model, LOST if v.claim.row % 2 else NORMS)


def test_a_row_that_is_added_changes_no_verdict_of_another() -> None:
    """What is printed as the multiply-adds keeps them, where one more row of the source has them with norms alone."""
    same = [m for m in NORMED if simplest(m, NORMS) == PLAIN]
    (other, *_) = (m for m in NORMED if simplest(m, NORMS) == NORMS)
    rows = [(m, printed(macs(m))) for m in same]
    before, after = audit(rows), audit([*rows, (other, printed(value(other, NORMS)))])
    assert len(same) > OTHERS
    assert {v.best and v.best.what for v in before} == {PLAIN}
    assert [v.best for v in after[:-1]] == [v.best for v in before]
    assert after[0].evidence == f"also fits {NORMS}, as the other {len(same):,} rows of this source"
    named = replace(before[0].claim, counter="fvcore")
    assert verdicts([named], {named.row: OUTCOMES[named.model]}, {})[0][0].best.what == NORMS  # type: ignore[union-attr]


READINGS = [Candidate(1_000_000_000, WORK, MAC, "plain"), Candidate(1_100_000_000, PART, MAC, "with")]


@pytest.mark.parametrize(("rows", "known"), [(OTHERS, False), (OTHERS + 1, True)])
def test_no_row_is_evidence_for_itself(rows: int, known: bool) -> None:
    """Exact figures leave no doubt, and yet OTHERS rows besides the one that is read have to agree."""
    each = [row_of(i, "s", figure("1100000000"), READINGS) for i in range(rows)]
    found, _ = weigh(each, {"plain": WORK, "with": PART})
    assert [bool(found.get(i)) for i in range(rows)] == [known] * rows


def test_a_reading_needs_its_odds_without_the_row_that_is_read() -> None:
    """Figures of one digit: each is 2 with a probability of log(2.5 / 1.5) / log(100) by chance."""
    chance = math.log(2.5 / 1.5) / math.log(100)
    tried = 1
    needed = math.ceil(math.log(ODDS * tried) / -math.log(chance)) + 1
    for rows in range(OTHERS + 1, 2 * needed):
        each = [row_of(i, "s", figure("2G"), [Candidate(2_000_000_000, PART, MAC, "with")]) for i in range(rows)]
        found, _ = weigh(each, {"with": PART})
        # the share of chance, half a row, takes a little of each
        sure = (rows - 1) * -math.log(chance / (rows / (rows + 0.5) + 0.5 / (rows + 0.5) * chance)) >= math.log(ODDS)
        assert bool(found.get(0)) == sure


def test_a_source_is_what_stands_before_release_and_row() -> None:
    assert source_of("timm aa4b585, PyTorch 2.9; 1 row") == "timm aa4b585"
    assert source_of("") == ""


def test_figures_of_any_length_have_a_chance() -> None:
    """Of zero, and of so many digits that a float does not tell their ends apart."""
    texts = ["0", "1", "9" * 17, "1" + "0" * 40, "1e99"]
    rows = [row_of(i, "", figure(text), READINGS) for i, text in enumerate(texts)]
    assert [row for row in rows if not 0 < row.chance <= 1] == []
    assert weigh(rows, {}) == ({}, [])
