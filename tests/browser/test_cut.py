"""Nothing is cut off without a mark: what is too wide wraps, or ends in an ellipsis and has its whole name in a title.

No number and no label of a report breaks in two, and no amount in a cell of heat is cut at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.engine.answer import Answer
from reconcile.products.scorecard import page as scorecard_page
from reconcile.products.scorecard.cells import read_cards
from reconcile.products.scorecard.report import Board
from reconcile.report.page import to_html
from tests.browser import long_names
from tests.browser.page import Page
from tests.browser.results import gru_demo, steps

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (390, 768, 1280, 1920)
CUT = """
// What clips its text: without a mark, or with a mark whose whole text stands in no title.
const found = [];
for (const element of document.querySelectorAll('body *')) {
  if (!element.checkVisibility() || !element.textContent.trim() || element.closest('.skip, svg, select')) continue;
  const style = getComputedStyle(element);
  const wide = element.scrollWidth > element.clientWidth + 1, high = element.scrollHeight > element.clientHeight + 1;
  const clips = [style.overflowX, style.overflowY].some((way) => way === 'hidden' || way === 'clip')
    || style.overflowX === 'auto' && style.scrollbarWidth === 'none';
  if (element.clientWidth && clips && (wide || high)) {
    const marked = style.textOverflow === 'ellipsis' && style.whiteSpace === 'nowrap' || style.webkitLineClamp !== 'none';
    const told = element.title || element.querySelector('[title]');
    const amount = element.matches('.heat');
    if (!marked || !told || amount) found.push(`${element.className}: ${element.textContent.trim().slice(0, 60)}`);
  }
}
return found;
"""
BROKEN = """
const lines = (node) => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return new Set([...range.getClientRects()].filter((box) => box.width).map((box) => Math.round(box.top))).size;
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, text = node.data.trim(), element = node.parentElement;
  if (!element.checkVisibility()) continue;
  const number = /^[+-]?[\\d][\\d,.]*$/.test(text);
  const name = innerWidth >= 1280 && element.closest('.counters tbody th .link');
  if ((number || name) && lines(node) > 1) found.push(text);
}
for (const cell of document.querySelectorAll('.counters td[data-label]')) {
  const label = getComputedStyle(cell, '::before');
  if (cell.checkVisibility() && label.content !== 'none' && label.whiteSpace !== 'nowrap') found.push(cell.dataset.label);
}
for (const label of document.querySelectorAll('.ticks span')) {
  if (label.checkVisibility() && lines(label) > 3) found.push(label.textContent);
}
for (const cell of document.querySelectorAll('.counters th, .counters td')) {
  const box = cell.getBoundingClientRect();
  if (cell.checkVisibility() && box.width && box.left >= 0 && box.right > innerWidth + 1) found.push(cell.textContent);
}
return found;
"""
AWAY = """
// Cells that stand beside the window; a region that scrolls sideways may hold some only if the page says so.
const said = document.querySelector('.hint')?.checkVisibility();
return [...document.querySelectorAll(arguments[0])].filter((cell) => {
  const head = cell.closest('thead');
  if (head && getComputedStyle(head).position === 'absolute') return false; // there for screen readers
  const box = cell.getBoundingClientRect();
  return cell.checkVisibility() && box.width && (box.right > innerWidth + 1 || box.left < 0) && !said;
}).map((cell) => cell.textContent.trim().slice(0, 60));
"""
HIDDEN = """
// Figures and verdicts of rows that are not whole in the window, by their row.
return [...document.querySelectorAll('#table tbody tr')].flatMap((row) =>
  ['.model', '.figure', '.verdict', '.source'].filter((part) => {
    const cell = row.querySelector(part), range = document.createRange();
    range.selectNodeContents(cell);
    return [...range.getClientRects()].some((box) => box.left < 0 || box.right > innerWidth);
  }).map((part) => part + row.textContent.trim().slice(0, 30)));
"""

SPLIT = """
// Cells whose text is on more than one line.
return [...document.querySelectorAll(arguments[0])].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return cell.checkVisibility() && new Set([...range.getClientRects()].map((box) => Math.round(box.bottom))).size > 1;
}).map((cell) => cell.textContent);
"""

EDGE = "return document.querySelectorAll('.wide tbody th[scope=row]')[3].getBoundingClientRect().left"


@pytest.fixture
def shown(driver: Chrome, opened: Callable[[str], Page]) -> Iterator[Callable[[str], Page]]:
    """A page of this text; in the end the console said nothing."""
    from tests.browser import chromium

    yield opened
    assert chromium.complaints(driver) == []


def without_products() -> Answer:
    """gru_demo as if nothing of its convolution were work: what counters count there is shown as amounts, not as ratios."""
    result = gru_demo()
    layers = tuple(
        replace(row, work=dict.fromkeys(row.work, 0)) if row.layer == "conv" else row for row in result.layers
    )
    return replace(result, layers=layers)


PAGES: dict[str, Callable[[], str]] = {
    "amounts": lambda: to_html(without_products(), None, ""),
    "gru_demo": lambda: to_html(gru_demo(), None, "reconcile run --model gru_demo"),
    "steps": lambda: to_html(steps(12), None, "reconcile run --torch net:Net --pass training"),
    "adapter": lambda: to_html(long_names.adapter(), None, "reconcile run --torch net:Net"),
    "audit": long_names.audit,
    "scorecard": lambda: scorecard_page.to_html(Board(read_cards())),
}


@pytest.mark.parametrize("wide", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_without_a_mark(shown: Callable[[str], Page], name: str, wide: int) -> None:
    page = shown(PAGES[name]())
    page.resize(wide, 900)
    assert page.run(CUT) == []
    assert page.run(AWAY, "th, td") == []
    if name in ("gru_demo", "steps"):
        assert page.run(BROKEN) == []
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wide", WIDTHS)
def test_an_audit_shows_figure_verdict_and_source(shown: Callable[[str], Page], wide: int, scheme: str) -> None:
    page = shown(long_names.audit())
    page.scheme(scheme)
    page.resize(wide, 900)
    assert page.run("return document.querySelectorAll('#table tbody tr').length") == 12
    assert page.run(HIDDEN) == []
    cells = "#table .figure, #table .verdict, #table [data-label=input], #table .n"
    assert [] in [page.run(SPLIT, cells) for _ in range(2)]  # a busy machine lays the page out after it was resized


@pytest.mark.parametrize("wide", WIDTHS)
def test_the_name_of_a_layer_stays_when_the_scorecard_scrolls(shown: Callable[[str], Page], wide: int) -> None:
    page = shown(PAGES["scorecard"]())
    page.resize(wide, 900)
    page.run("document.querySelector('.wide').scrollLeft = 400")
    edge = page.run(EDGE)
    assert edge >= 0
    assert page.run(SPLIT, ".wide tbody th, .wide summary") == []
    assert page.run("return document.querySelector('.hint').checkVisibility()")


def test_a_long_name_is_whole_where_a_line_is_opened(shown: Callable[[str], Page]) -> None:
    page = shown(PAGES["adapter"]())
    page.resize(390, 844)
    page.pick(from_="thop")
    page.run("document.querySelector('#table .body > .vrow').click()")
    assert long_names.LAYER in page.text("#detail")
