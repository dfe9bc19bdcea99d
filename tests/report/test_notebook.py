"""What a notebook shows of a run: whole HTML that adds up and loads nothing (test_document.py has names)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from reconcile.api.results import Run
from reconcile.engine.answer import Answer
from reconcile.engine.verdict import verdict
from reconcile.report.document.html import to_fragment
from reconcile.report.document.markdown import to_markdown
from reconcile.report.notebook import LAYERS, describe_run
from tests.report import samples
from tests.report.tables import Page, amount, read
from tests.report.test_document import Words
from tests.report.test_footing import add_statement

each = pytest.mark.parametrize("sample", samples.SAMPLES)


def shown(result: Answer) -> Page:
    """The same Document as Markdown, whose tables are read back."""
    return read(to_markdown(describe_run(result)))


@each
def test_it_says_the_verdict_and_the_summary(sample: Callable[[], Answer]) -> None:
    result = sample()
    said = verdict(result)
    for text in (shown(result).text, " ".join(Words(f"<body>{to_fragment(describe_run(result))}").found)):
        for sentence in [*(f.sentence for f in said.figures), *(w.sentence for w in said.withheld), *said.cautions]:
            assert sentence in text
        assert said.difference in text
        assert str(Run(result)) in text


@each
def test_every_counter_has_a_row_with_its_ratio_or_its_reason(sample: Callable[[], Answer]) -> None:
    result = sample()
    rows = {row[0]: row for row in shown(result).tables[0].rows} if result.ledgers else {}
    for counter in verdict(result).counters:
        row = rows[counter.ledger.counter]
        if counter.off is None:
            assert counter.state.value.replace("_", " ") in row
        else:
            assert counter.ratio is not None
            assert float(row[3]) == pytest.approx(counter.ratio, abs=5e-4)
            amounts = [int(n.replace(",", "")) for n in re.findall(r"[+-][\d,]*\d", row[5])]
            assert amount(row[2]) + sum(amounts) == counter.work


@each
def test_the_statement_of_the_furthest_counter_adds_up(sample: Callable[[], Answer]) -> None:
    result = sample()
    off = {c.ledger.counter: abs(c.off) for c in verdict(result).counters if c.off}
    tables = shown(result).tables
    assert len(tables) == bool(result.ledgers) + bool(off)
    if off:
        assert tables[1].rows[0][0] == max(off, key=lambda name: off[name])
        add_statement(tables[1])


def test_many_layers_are_cut_short_without_losing_an_amount() -> None:
    table = shown(samples.grown(LAYERS + 3, samples.letters)).tables[1]
    add_statement(table)
    inner = [row for row in table.rows if not row[0]]
    assert (len(inner), inner[-1][1]) == (LAYERS + 1, "3 more lines")


@each
def test_it_loads_and_runs_nothing(sample: Callable[[], Answer]) -> None:
    html = to_fragment(describe_run(sample()))
    assert not re.search(r"<script|<img|https?:|url\(|@import|javascript:", html)
    assert len(html) < 50_000


def test_how_the_trace_was_taken_is_said() -> None:
    result = samples.clean()
    noted = replace(result.traces[1], notes=("1 loop counts were read from one run on the example input",))
    text = shown(replace(result, traces=(result.traces[0], noted))).text
    assert "trace@torch: 1 loop counts were read from one run on the example input" in text


def test_a_run_shows_itself() -> None:
    found = Run(samples.clean())
    assert repr(found) == (
        "<reconcile.Run of toy: Reconciled: 4 counters, 1 exact, 3 off and explained to the last unit.>"
    )
    assert found._repr_html_() == to_fragment(describe_run(found.result))
    assert found._repr_markdown_() == to_markdown(describe_run(found.result))
