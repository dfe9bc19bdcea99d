"""A report of a large model is small: its tables show their largest lines and the sum of the others, and add up as before."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, BUILT_IN
from reconcile.core.records import FORWARD, WEIGHT_GRADIENT
from reconcile.core.results import Residual
from reconcile.core.work import Work
from reconcile.engine.answer import Answer
from reconcile.report import folds, markdown, reports
from reconcile.report.csv import layers_csv
from reconcile.report.markdown import MAX_BYTES, to_markdown
from tests.report import samples
from tests.report.samples import trained, with_a_hole
from tests.report.tables import Page, amount, read
from tests.report.test_footing import add_layers, add_statement

MANY = 300


def large(layers: int = MANY) -> Answer:
    return samples.grown(layers, samples.letters)


def cut_page(result: Answer) -> Page:
    return read(to_markdown(result, table="toy.layers.csv"))


def under(page: Page, heading: str) -> list[list[str]]:
    return next(t for t in page.tables if t.heading == heading).rows


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 9), st.sampled_from([None, 0, 1, 5]))
def test_the_largest_stay_in_their_order(sizes: list[int], limit: int, kept: int | None) -> None:
    lines = list(enumerate(sizes))
    shown, rest = folds.keep_largest(lines, limit, lambda line: line[1], lambda line: line[1] == kept)
    assert sorted([*shown, *rest]) == lines
    assert list(shown) == sorted(shown)
    assert list(rest) == sorted(rest)
    assert len(rest) != 1
    assert kept not in [size for _, size in rest]
    least = sorted(sizes, reverse=True)[:limit]
    assert [size for _, size in rest if size > min(least, default=9)] == []
    assert folds.keep_largest(lines, None, lambda line: line[1]) == (lines, ())


def test_a_large_model_has_a_small_report_beside_its_table() -> None:
    result = large()
    texts = reports.render(result, ("md",))
    text = str(texts["md"])
    assert len(text.encode()) <= MAX_BYTES < len(to_markdown(result).encode())
    assert "[toy.layers.csv](toy.layers.csv)" in text
    assert "more lines" not in to_markdown(result)
    rows = list(csv.DictReader(io.StringIO(str(texts["layers.csv"]))))
    assert [row["layer"] for row in rows] == [row.layer for row in result.layers]


def test_a_report_shows_as_many_lines_as_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for size in (6500, 5500, 4500, 4000, 3000, 100):
        monkeypatch.setattr(markdown, "MAX_BYTES", size)
        text = to_markdown(large(), table="toy.layers.csv")
        found = re.search(r"shows its ([0-9]+) largest", text)
        assert found
        shown[int(found[1])] = len(text.encode())
        assert len(text.encode()) <= size or int(found[1]) == min(markdown.LINE_LIMITS)
    assert len(shown) >= 4
    assert sorted(shown) == sorted(shown, key=shown.__getitem__)


def test_the_tables_add_up_after_the_cut() -> None:
    result = large()
    page = cut_page(result)
    add_statement(next(t for t in page.tables if "of which" in t.header))
    add_layers(next(t for t in page.tables if t.heading == "Layers"), {samples.FROZEN: "tf"})
    *rows, rest, _ = under(page, "Layers")
    assert rest[0] == f"{MANY - len(rows)} more layers"
    assert amount(rest[1]) == (MANY - len(rows)) * samples.MM_DENSE


@pytest.mark.parametrize("place", [0, 7, MANY - 1])
def test_a_residual_is_never_in_the_sum(place: int) -> None:
    """A residual of one unit, among layers of thousands."""
    result = large()
    name = result.layers[place].layer
    (first,) = result.statements
    left = replace(
        first,
        residuals=(Residual(name, 1, "nobody knows"),),
        residual=1,
        to_total=(first.to_total or 0) + 1,
        state=State.UNEXPLAINED,
    )
    off = tuple(
        replace(row, work={}, counters={}, causes={}, residuals={samples.FROZEN: 1}) if row.layer == name else row
        for row in result.layers
    )
    page = cut_page(replace(result, statements=(left,), layers=off))
    assert name in [row[0] for row in under(page, "Layers")]
    table = next(t for t in page.tables if "of which" in t.header)
    assert [row[1:3] for row in table.rows if row[0] == "residual"] == [[name, "nobody knows"]]


def test_many_residuals_are_all_shown() -> None:
    """However large the report becomes."""
    result = large()
    (first,) = result.statements
    rests = tuple(Residual(row.layer, 1, f"reason {row.layer}") for row in result.layers)
    left = replace(
        first, residuals=rests, residual=MANY, to_total=(first.to_total or 0) + MANY, state=State.UNEXPLAINED
    )
    text = to_markdown(replace(result, statements=(left,)), table="toy.layers.csv")
    assert [rest.reason for rest in rests if rest.reason not in text] == []


def repeated(make: Callable[[], Answer], times: int) -> Answer:
    """A training step with this number of copies of the first layer, each with one multiply-add more than the one before."""
    result = make()
    (ran,) = result.traces
    first = [row for row in ran.rows if row.layer == "first"]
    rows = [
        replace(row, id=f"{row.id}-{i}", layer=samples.letters(i), work=row.work + Work(mac=i, accumulators=0))
        for i in range(times)
        for row in first
    ]
    return replace(
        result,
        traces=(replace(ran, rows=(*ran.rows, *rows)),),
        layers=tuple(replace(result.layers[0], layer=samples.letters(i)) for i in range(times)),
    )


def test_the_tables_by_phase_add_up_after_the_cut() -> None:
    page = cut_page(repeated(trained, MANY))
    tables = [t for t in page.tables if "backward / forward" in t.header]
    assert len(tables) == 2
    for table in tables:
        *rows, total = table.rows
        assert len(rows) < 50
        for column in range(1, len(table.header) - 1):
            assert sum(amount(row[column]) for row in rows if row[column]) == amount(total[column])


def test_unknown_work_is_never_in_a_sum_of_phases() -> None:
    page = cut_page(repeated(with_a_hole, MANY))
    tables = [t for t in page.tables if "backward / forward" in t.header]
    assert tables
    for table in tables:
        assert [row for row in table.rows if row[0] == "second" and any("≥" in cell for cell in row)]
        assert [row for row in table.rows if "more layers" in row[0] and not any("≥" in cell for cell in row)]


def test_differences_between_models_add_up_after_the_cut() -> None:
    lines = [
        samples.line(Cause.REAL_WORK_DIFFERS, samples.letters(i), samples.FROZEN, i + 1, "op") for i in range(MANY)
    ]
    total = sum(line.amount for line in lines)
    between = samples.statement(samples.TF, samples.TORCH, 1000, 1000 + total, *lines)
    result = large()
    page = cut_page(replace(result, statements=(*result.statements, between)))
    table = next(t for t in page.tables if "what differs" in t.header)
    opening, *rows, end = (amount(cell) for cell in table.column("FLOP"))
    assert opening + sum(rows) == end == 1000 + total
    assert len(rows) < 50
    assert table.column("layer")[-2] == f"{MANY - len(rows) + 1} more lines"


def test_the_table_of_every_layer_has_the_phases() -> None:
    result = repeated(trained, 12)
    (ran,) = result.traces
    conventions = (BUILT_IN["matmul"], ALL)
    rows = {row["layer"]: row for row in csv.DictReader(io.StringIO(layers_csv(result)))}
    for i, convention, phase in itertools.product(range(12), conventions, (FORWARD, WEIGHT_GRADIENT)):
        work = sum((row.work for row in ran.rows if (row.layer, row.phase) == (samples.letters(i), phase)), Work())
        assert int(rows[samples.letters(i)][f"{convention.name} (torch): {phase}"]) == convention.flops(work)


def test_a_column_of_the_table_adds_up_to_its_phase() -> None:
    """Also where a layer has work under the widest convention alone, and none that a counter is compared with."""
    result = repeated(trained, 12)
    (ran,) = result.traces
    rows = list(csv.DictReader(io.StringIO(layers_csv(result))))
    assert len(rows) == len({row["layer"] for row in rows}) > len(result.layers)
    for phase in (FORWARD, WEIGHT_GRADIENT):
        work = sum((row.work for row in ran.rows if row.phase == phase), Work())
        assert sum(int(row[f"all (torch): {phase}"] or 0) for row in rows) == ALL.flops(work) > 0
