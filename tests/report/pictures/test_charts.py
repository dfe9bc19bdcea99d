"""The numbers of the pictures add up, before anything is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.option import FORMATS
from reconcile.engine.answer import Answer
from reconcile.report import reports, view
from reconcile.report.markdown import to_markdown
from reconcile.report.pictures import charts as pictures
from reconcile.report.pictures.charts import by_layer, list_embedded, waterfall
from tests.report import samples

SAMPLES = [sample() for sample in samples.SAMPLES]


@pytest.mark.parametrize("result", SAMPLES)
def test_the_bars_of_a_statement_lead_from_total_to_total(result: Answer) -> None:
    for statement in result.statements:
        bars = waterfall(statement)
        if statement.from_total is None or statement.to_total is None:
            assert bars == []
            continue
        first, *steps, last = bars
        assert (first.amount, last.amount) == (statement.from_total, statement.to_total)
        assert first.amount + sum(step.amount for step in steps) == last.amount
        assert [b.start for b in steps] == [b.end for b in bars[:-2]]
        assert [b.kind for b in steps] == ["cause"] * (len(steps) - 1) + ["residual"]
        assert steps[-1].amount == statement.residual


@pytest.mark.parametrize("result", SAMPLES)
@pytest.mark.parametrize("limit", [1, 2, 24])
def test_the_columns_by_layer_add_up_to_the_totals(result: Answer, limit: int) -> None:
    chart = by_layer(result, limit)
    totals = {x.counter: x.normalised_total for x in result.ledgers if x.normalised_total is not None}
    if result.layers:
        assert {c.counter: sum(c.values) for c in chart.columns} == totals
        assert len(chart.labels) <= max(limit, 1)
        lengths = {c.counter: (len(c.values), len(c.work)) for c in chart.columns}
        assert lengths == dict.fromkeys(lengths, (len(chart.labels), len(chart.labels)))


def test_unknown_work_stays_unknown_when_rows_are_joined() -> None:
    result = samples.incomplete()
    framework = next(t.framework for t in result.traces if not t.complete)
    counter = next(x.counter for x in result.ledgers if x.framework == framework)
    column = next(c for c in by_layer(result, 1).columns if c.counter == counter)
    holes = [row for row in result.layers if framework not in row.work]
    assert (column.work == (None,)) == bool(holes)


def test_the_smallest_layers_are_put_together() -> None:
    result = samples.grown(40)
    chart = by_layer(result, 10)
    assert len(chart.labels) == 10
    assert chart.labels[-1] == f"{len(result.layers) - 9} more layers"


def test_markdown_shows_only_the_pictures_that_were_drawn() -> None:
    result = samples.clean()
    drawn = ("waterfall.svg", "waterfall.png", "layers.png")
    text = to_markdown(result, None, "", list_embedded("a model", drawn))
    assert "](a%20model.waterfall.svg)" in text
    assert "](a%20model.layers.png)" in text
    assert "waterfall.png" not in text
    assert "![" not in to_markdown(result)
    headline = view.default_statement(result)
    assert headline is not None
    assert text.index("waterfall.svg") > text.index(f"| **{headline.to}** |")


def test_without_the_library_pictures_are_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'flop-reconcile\[plots\]'"):
        pictures.require()
    with pytest.raises(UsageError, match="matplotlib"):
        reports.render(samples.clean(), ("md", "svg"))
    assert set(reports.render(samples.clean(), ("md",))) == {"md"}


def test_the_formats_that_lie_there_are_found(tmp_path: Path) -> None:
    for name in ("toy.md", "toy.waterfall.svg", "toy.layers.svg", "toy.json", "toys.png", "toy"):
        (tmp_path / name).touch()
    assert reports.find_formats(tmp_path, "toy") == ("md", "json", "svg")


@pytest.mark.parametrize(("can", "added"), [(True, ("svg",)), (False, ())])
def test_pictures_that_lie_there_are_drawn_anew(
    can: bool, added: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "can_draw", lambda: can)
    (tmp_path / "toy.json").touch()
    assert reports.add_outdated_pictures(tmp_path, "toy", ("md",)) == ("md",)
    (tmp_path / "toy.waterfall.svg").touch()
    assert reports.add_outdated_pictures(tmp_path, "toy", FORMATS) == (*FORMATS, *added)
    assert reports.add_outdated_pictures(tmp_path, "toy", ("md", "svg")) == ("md", "svg")
