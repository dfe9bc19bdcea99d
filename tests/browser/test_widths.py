"""No number and no label of the page breaks in two, at any width, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.page import Page
from tests.browser.results import gru_demo, steps

Show = Callable[..., Page]
WIDTHS = (390, 768, 1280, 1920)
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
WIDER = "return document.documentElement.scrollWidth - innerWidth;"
RUNS = {"gru_demo": gru_demo, "steps": lambda: steps(12)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wide", WIDTHS)
@pytest.mark.parametrize("run", RUNS)
def test_nothing_breaks_in_two(show: Show, run: str, wide: int, scheme: str) -> None:
    page = show(RUNS[run]())
    page.resize(wide, 900)
    page.scheme(scheme)
    assert page.run(BROKEN) == []
    assert page.run(WIDER) <= 0


def test_every_bar_reaches_the_next(show: Show) -> None:
    """The line from the end of a bar begins at its lower edge and meets the row below, also beside an empty residual."""
    page = show(gru_demo())
    gaps = page.run(
        """
        const fills = [...document.querySelectorAll('.waterfall > li > .row .fill')];
        return fills.slice(0, -1).map((fill, i) => {
          const after = getComputedStyle(fill, '::after');
          const start = fill.classList.contains('none') ? fill.getBoundingClientRect().top : fill.getBoundingClientRect().bottom;
          return fills[i + 1].getBoundingClientRect().top - (start + parseFloat(after.height));
        });
        """
    )
    assert [gap for gap in gaps if gap > 1] == []
