"""A framework without counters, from another package: both traces, what separates them, and every report of it."""

from __future__ import annotations

import json

import jsonschema
import pytest

import reconcile
from reconcile.core import registry
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle_each
from reconcile.engine.verdict import verdict
from reconcile.report import reports
from reconcile.report.page.data import page_data
from reconcile.report.schema import schema
from reconcile.work import load, restore_registry
from tests.outside import NUMPY, matmul, three

HERE, THERE = 2 * 2 * 5 * 4, 2 * 2 * 5 * 6  # FLOPs: two per multiply-add


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """A product of 2x5 by 5x4 in PyTorch, of 2x5 by 5x6 in NumPy."""
    monkeypatch.setitem(registry.frameworks(), "numpy", NUMPY)
    empty = {"layers": [], "notes": [], "published": [], "doc": "", "source": "", "training": ""}
    params = {"torch": "net:make", "numpy": "nets:make"}
    meta = {**empty, "name": "net.make+nets.make", "params": params, "frameworks": list(params)}
    load()
    with restore_registry():
        return settle_each(
            Collected(meta, (matmul("torch", 2, 5, 4), matmul("numpy", 2, 5, 6)), ()), Conventions(MATMUL)
        )


def test_both_traces_and_the_statement_between_them(result: Answer) -> None:
    assert {t.name: t.totals["matmul"] for t in result.traces} == {"trace@torch": HERE, "trace@numpy": THERE}
    (statement,) = result.statements
    assert (statement.from_, statement.to, statement.residual) == ("trace@torch", "trace@numpy", 0)
    assert [(a.layer, a.amount) for a in statement.adjustments] == [("fc", THERE - HERE)]


def test_every_report_shows_both(result: Answer) -> None:
    texts = reports.render(result, ("md", "csv", "json", "html"), None, "")
    assert [name for name, text in texts.items() if "numpy" not in str(text) or "torch" not in str(text)] == []
    page = str(texts["md"])
    assert "| row | torch | numpy | matched by |\n|:--|:--|:--|:--|\n| fc | fc | fc | name |" in page
    assert "in NumPy" in page


def test_the_frames_have_both(result: Answer) -> None:
    pytest.importorskip("pandas")
    run = reconcile.Run(result)
    assert run.table.loc["fc"].to_dict() == {"work (torch)": HERE, "work (numpy)": THERE}
    assert run.between("trace@torch", "trace@numpy")["FLOP"].tolist() == [HERE, THERE - HERE, 0, THERE]


def test_the_data_meets_its_schema(result: Answer) -> None:
    data = json.loads(str(reports.render(result, ("json",), None, "")["json"]))
    assert [error.message for error in jsonschema.Draft202012Validator(schema()).iter_errors(data)] == []
    (row,) = data["alignment"]
    assert (row["torch"], row["numpy"]) == (["fc"], ["fc"])


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
