"""A framework without counters, from another package: both traces, what separates them, and every report of it."""

from __future__ import annotations

import json

import jsonschema

from reconcile.engine.verdict import verdict
from reconcile.report import reports
from reconcile.report.page.data import page_data
from reconcile.report.schema import schema
from tests.outside import three

HERE, THERE = 2 * 2 * 5 * 4, 2 * 2 * 5 * 6  # FLOPs: two per multiply-add


def test_three_traces_have_a_statement_for_every_two() -> None:
    result = three()
    found = {(s.from_, s.to): [a.amount for a in s.adjustments] for s in result.statements}
    assert found == {
        ("trace@tf", "trace@torch"): [],
        ("trace@tf", "trace@jax"): [THERE - HERE],
        ("trace@torch", "trace@jax"): [THERE - HERE],
    }
    assert {s.residual for s in result.statements} == {0}
    said = verdict(result)
    assert [figure.frameworks for figure in said.figures] == [("tf", "torch"), ("jax",)]
    assert said.difference.count(f"JAX does {THERE - HERE} FLOPs more than TensorFlow") == 1


def test_every_report_shows_three() -> None:
    result = three()
    texts = reports.render(result, ("md", "csv", "json", "html"), None, "")
    page = str(texts["md"])
    assert (
        "| row | tf | torch | jax | matched by |\n|:--|:--|:--|:--|:--|\n| fc | fc | fc | fc | name+work and name |"
        in page
    )
    assert "## Real differences between the models" in page
    assert f"trace@tf and trace@torch do the same work, {HERE} FLOP" in page
    data = json.loads(str(texts["json"]))
    assert [error.message for error in jsonschema.Draft202012Validator(schema()).iter_errors(data)] == []
    view = page_data((result,), None)["views"][0]
    assert [across["ends"] for across in view["between"]] == [[0, 1], [0, 2], [1, 2]]
    assert [across["to"] - across["from"] for across in view["between"]] == [0, THERE - HERE, THERE - HERE]
