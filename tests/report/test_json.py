"""The JSON report: its schema, exact integers, a fixed order, and nothing that tells where or when."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import jsonschema
import pytest

from reconcile.core.causes import Cause
from reconcile.core.results import Adjustment, Evidence, LedgerResult, TraceResult
from reconcile.engine.answer import Answer
from reconcile.report.json import to_dict, to_json
from reconcile.report.json_text import plain
from reconcile.report.schema import schema
from tests.report import samples

SAMPLES = samples.SAMPLES


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_report_meets_its_schema(sample: Callable[[], Answer], validator: Any) -> None:
    validator.validate(json.loads(to_json(sample())))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("statements", 0, "residual"), 0.5),
        (("statements", 1, "adjustments", 0, "cause"), "because"),
        (("statements", 1, "adjustments", 0, "amount"), 0),
        (("statements", 1, "adjustments", 0, "evidence", 0, "amount"), 256),
        (("ledgers", 0, "state"), "fine"),
        (("ledgers", 1, "unit"), "GFLOP"),
        (("schema",), 2),
        (("traces", 0, "rows", 0, "mac"), -1),
    ],
)
def test_the_schema_refuses_what_is_wrong(path: tuple[Any, ...], value: object, validator: Any) -> None:
    data = to_dict(samples.full())
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(data)


def test_the_schema_knows_every_cause_in_booking_order(validator: Any) -> None:
    assert validator.schema["$defs"]["cause"]["enum"] == [c.value for c in Cause]


def test_integers_stay_exact_past_2_to_the_53() -> None:
    big = 2**53 + 1
    result = samples.full()
    ledger = replace(result.ledgers[3], total=big, normalised_total=2 * big)
    text = to_json(replace(result, ledgers=(ledger,)))
    (read,) = json.loads(text)["ledgers"]
    assert (read["total"], read["normalised_total"]) == (big, 2 * big)
    assert f'"total": {big}' in text


def test_rule_mismatches_counts_the_mismatches() -> None:
    ledgers = {x["counter"]: x for x in to_dict(samples.unexplained())["ledgers"]}
    assert ledgers["thop"]["rule_mismatches"] == len(ledgers["thop"]["mismatches"]) == 1
    assert ledgers["fvcore"]["rule_mismatches"] == 0
    assert {"expected", "reported", "rule", "source"} <= set(ledgers["thop"]["mismatches"][0])


def test_every_field_of_the_records_is_there() -> None:
    data = to_dict(samples.full())
    (line,) = data["statements"][3]["adjustments"]
    assert {f.name for f in fields(Evidence)} == set(line["evidence"][0])
    assert {f.name for f in fields(Adjustment)} == set(line)
    assert {f.name for f in fields(LedgerResult)} <= set(data["ledgers"][0])
    unweighed = {
        "unweighed",
        "stated",
        "parameters",
    }  # a note names these ops, totals lack the conventions that weigh them
    assert {f.name for f in fields(TraceResult)} - unweighed | {"phases", "mfu_flops", "hfu_flops"} == set(
        data["traces"][0]
    )


def test_components_of_a_row_are_over_all_calls() -> None:
    rows = {r["id"]: r for t in to_dict(samples.full())["traces"] for r in t["rows"]}
    cell = rows["net.loop/cell"]
    assert cell["calls"] == samples.T
    assert cell["mac"] == samples.T * samples.STEP.mac


def test_work_is_the_first_complete_trace() -> None:
    both = to_dict(samples.everything())["layers"][1]
    assert both["work"] == both["work_by_framework"]["tf"] != both["work_by_framework"]["torch"]
    blank = replace(samples.full(), traces=())
    assert to_dict(blank)["layers"][0]["work"] is None


def test_order_does_not_depend_on_how_mappings_were_filled() -> None:
    result = samples.full()
    turned = replace(result, environment=dict(reversed(list(result.environment.items()))))
    assert to_json(result) == to_json(turned)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        ((1, (None, 2)), [1, [None, 2]]),
        (Cause.DEAD_OP, "dead-op"),
        ({1: 0.5}, {"1": 0.5}),
        (True, True),
    ],
)
def test_values_that_json_has_no_word_for(value: object, shown: object) -> None:
    assert plain(value) == shown
    json.dumps(plain(value), allow_nan=False)


def test_records_stand_one_per_line() -> None:
    lines = to_json(samples.grown(50)).splitlines()
    assert sum('"layer": "block' in line and '"counters"' in line and '"causes"' in line for line in lines) == 50
