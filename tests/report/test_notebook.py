"""The notebook's view: whole HTML that adds up, loads nothing, and shows hostile names as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from reconcile.api.results import Run
from reconcile.core.text import clean
from reconcile.engine.answer import Answer
from reconcile.engine.verdict import verdict
from reconcile.report.notebook import LAYERS, to_html, to_markdown
from tests.report import samples
from tests.report.tables import amount, read

VOID = {"br", "meta"}
TAGS = {"div", "style", "p", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
each = pytest.mark.parametrize("sample", samples.SAMPLES)


class Page(HTMLParser):
    """Elements, the text of each table row's cells, and everything that is shown; fails where tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data.strip()


@each
def test_it_says_the_verdict_and_the_summary(sample: Callable[[], Answer]) -> None:
    result = sample()
    said = verdict(result)
    text = Page(to_html(result)).text
    for sentence in [*(f.sentence for f in said.figures), *(w.sentence for w in said.withheld), *said.cautions]:
        assert sentence in text
    assert said.difference in text
    assert str(Run(result)) in text


@each
def test_every_counter_has_a_row_with_its_ratio_or_its_reason(sample: Callable[[], Answer]) -> None:
    result = sample()
    if not result.ledgers:
        return
    rows = {row[0]: row for row in Page(to_html(result)).tables[0][1:]}
    for counter in verdict(result).counters:
        shown = rows[counter.ledger.counter]
        if counter.off is None:
            assert counter.state.value.replace("_", " ") in shown
        else:
            assert counter.ratio is not None
            assert float(shown[3]) == pytest.approx(counter.ratio, abs=5e-4)
            amounts = [int(n.replace(",", "")) for n in re.findall(r"[+-][\d,]*\d", shown[5])]
            assert amount(shown[2]) + sum(amounts) == counter.work


@each
def test_the_statement_of_the_furthest_counter_adds_up(sample: Callable[[], Answer]) -> None:
    result = sample()
    off = {c.ledger.counter: abs(c.off) for c in verdict(result).counters if c.off}
    tables = Page(to_html(result)).tables
    assert len(tables) == bool(result.ledgers) + bool(off)
    if off:
        lines = tables[1][1:]
        assert lines[0][0] == max(off, key=lambda name: off[name])
        outer = [amount(row[-1]) for row in lines if row[-1]]
        assert sum(outer[:-1]) == outer[-1]


def test_many_layers_are_cut_short_without_losing_an_amount() -> None:
    lines = Page(to_html(samples.grown(LAYERS + 3))).tables[1]
    inner = [row for row in lines if not row[0]]
    assert len(inner) == LAYERS + 1
    assert inner[-1][1] == "3 more layers"
    assert sum(amount(row[-2]) for row in inner) == -(LAYERS + 3) * samples.BIAS


def test_hostile_names_are_text() -> None:
    result = samples.renamed(samples.unexplained(), "loop", samples.NASTY)
    ledgers = tuple(replace(x, unsupported={samples.NASTY: 1}) for x in result.ledgers)
    nasty = replace(result, model=samples.NASTY, params={samples.NASTY: samples.NASTY}, ledgers=ledgers)
    plain, page = Page(to_html(samples.unexplained())), Page(to_html(nasty))
    assert page.tags == plain.tags
    assert page.attributes == plain.attributes
    assert clean(samples.NASTY) in page.text
    assert not set("\x1b\u202e") & set(to_html(nasty))
    assert [html for html in read("# x\n\n" + to_markdown(nasty)).html if html != "<br>"] == []


@each
def test_it_loads_and_runs_nothing(sample: Callable[[], Answer]) -> None:
    html = to_html(sample())
    page = Page(html)
    assert page.tags <= TAGS
    assert page.attributes <= {"class", "style", "scope", "colspan", "open"}
    assert not re.search(r"https?:|url\(|@import|javascript:", html)
    assert len(html) < 50_000


def test_how_the_trace_was_taken_is_said() -> None:
    result = samples.clean()
    noted = replace(result.traces[1], notes=("1 loop counts were read from one run on the example input",))
    text = Page(to_html(replace(result, traces=(result.traces[0], noted)))).text
    assert "trace@torch: 1 loop counts were read from one run on the example input" in text


@each
def test_markdown_for_what_shows_no_html(sample: Callable[[], Answer]) -> None:
    result = sample()
    page = read("# x\n\n" + to_markdown(result))
    assert str(Run(result)) in page.text
    for figure in verdict(result).figures:
        assert figure.sentence in page.text
    if result.ledgers:
        assert page.tables[0].column("counter") == [x.counter for x in result.ledgers]


def test_a_run_shows_itself() -> None:
    found = Run(samples.clean())
    assert (
        repr(found) == "<reconcile.Run of toy: Reconciled: 4 counters, 1 exact, 3 off and explained to the last unit.>"
    )
    assert found._repr_html_() == to_html(found.result)
    assert found._repr_markdown_() == to_markdown(found.result)
