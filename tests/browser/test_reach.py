"""Who can use the page: without a mouse, on a phone, in the dark, with a screen reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.browser.page import DESKTOP, DOWN, ENTER, ESCAPE, NARROW, PHONE, SPACE, TAB, Page
from tests.browser.results import gru_demo, large
from tests.report import samples

Show = Callable[..., Page]

CONTRAST = """
const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const canvas = document.createElement('canvas');
canvas.width = canvas.height = 1;
const pen = canvas.getContext('2d', {willReadFrequently: true});
const over = (colors) => {  // colours painted one over the other, as the screen does it
  pen.clearRect(0, 0, 1, 1);
  for (const color of colors) { pen.fillStyle = color; pen.fillRect(0, 0, 1, 1); }
  const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
};
const behind = (element) => {
  const colors = [];
  for (let e = element; e; e = e.parentElement) colors.unshift(getComputedStyle(e).backgroundColor);
  return colors;
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('script, style, option, .skip')) continue;
  const grounds = [behind(element)];
  for (const fill of element.closest('.heat, .work')?.querySelectorAll('.fill, .over') ?? []) {
    grounds.push([...behind(fill.parentElement), getComputedStyle(fill).backgroundColor]);
  }
  for (const ground of grounds) {
    const [a, b] = [over([...ground, getComputedStyle(element).color]), over(ground)].sort((x, y) => y - x);
    found.push([Math.round(100 * (a + 0.05) / (b + 0.05)) / 100, walker.currentNode.data.trim().slice(0, 40), element.className]);
  }
}
return found;
"""
RUNS = {"gru_demo": gru_demo, "unexplained": samples.unexplained, "full": samples.full}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("run", RUNS)
def test_every_text_stands_out_from_what_is_behind_it(show: Show, scheme: str, run: str) -> None:
    page = show(RUNS[run]())
    page.scheme(scheme)
    page.waterfall()
    page.filter()
    texts = page.run(CONTRAST)
    assert len(texts) > 100
    assert [text for text in texts if text[0] < 4.5] == []
    page.run("document.querySelector('#tree .body > .vrow').click()")
    assert [text for text in page.run(CONTRAST) if text[0] < 4.5] == []


def background(page: Page) -> str:
    return page.run("return getComputedStyle(document.body).backgroundColor")


def test_the_theme_follows_the_system_until_it_is_told(show: Show) -> None:
    page = show(samples.clean())
    light = background(page)
    page.scheme("dark")
    dark = background(page)
    assert dark != light
    for expected, seen in (("light", light), ("dark", dark), ("auto", dark)):
        page.one("#theme").click()
        assert page.text("#theme") == f"Theme: {expected}"
        assert background(page) == seen


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", [NARROW, PHONE])
def test_a_phone_never_scrolls_sideways(show: Show, run: str, size: tuple[int, int]) -> None:
    page = show(RUNS[run]())
    page.resize(*size, phone=True)
    page.waterfall()
    page.filter()
    assert page.width() <= size[0]
    for opener in ("#waterfall .line button", "#tree .body > .vrow", "#table .body > .vrow"):
        page.run("document.querySelector(arguments[0])?.click()", opener)
        assert page.width() <= size[0]
        page.run("document.getElementById('detail').close()")
    assert page.run("const t = document.querySelector('#tree .viewport'); return t.scrollWidth <= t.clientWidth")


def until(page: Page, wanted: str, key: str = TAB, limit: int = 80) -> None:
    """Press a key until what is wanted has the focus."""
    for _ in range(limit):
        if page.run(f"return document.activeElement.matches({wanted!r})"):
            return
        page.press(key)
    raise AssertionError(f"{limit} presses do not lead to {wanted}")


def test_the_whole_page_without_a_mouse(show: Show) -> None:
    page = show(gru_demo())
    page.press(TAB)
    assert page.focused("className") == "skip"
    page.press(ENTER)
    assert page.focused() == "statement-title"
    until(page, "#from")
    page.press(DOWN)
    assert page.text("#statement-title") != "From tf.profiler@frozen to thop"
    until(page, "#waterfall .step > .opens")
    page.press(ENTER)
    assert page.focused("getAttribute('aria-expanded')") == "true"
    until(page, "#waterfall .part > .opens")
    page.press(SPACE)
    until(page, "#waterfall .line button")
    page.press(ENTER)
    assert page.run("return document.getElementById('detail').open")
    page.press(ESCAPE)
    assert page.run("return document.activeElement.matches('#waterfall .line button')")
    until(page, "#tree .vrow")
    until(page, "#find", limit=10)
    page.press("bias")
    until(page, "#table .head .amount button")
    page.press(ENTER)
    assert page.one("#table .head .amount").get_attribute("aria-sort") == "descending"
    until(page, "#table .body > .vrow")
    page.press(DOWN, ENTER)
    assert page.run("return document.getElementById('detail').open")
    page.press(ESCAPE)
    until(page, "#copy", limit=10)


def test_the_focus_is_seen(show: Show) -> None:
    page = show(gru_demo())
    for wanted in (
        ".bar a",
        "#theme",
        "#convention",
        "#counters button",
        "#from",
        "#waterfall .opens",
        "#tree .vrow",
        "#find",
    ):
        until(page, wanted)
        assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid", wanted


CUT = """
const amounts = [...document.querySelectorAll('#tree .body .work, #tree .body .work .text')];
const rows = [...document.querySelectorAll('#tree .body > .vrow')];
const cut = amounts.filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth);
return [...cut, ...rows.filter((e) => e.scrollHeight > e.clientHeight)].map((e) => e.textContent);
"""


@pytest.mark.parametrize("size", [DESKTOP, PHONE, NARROW])
def test_both_amounts_of_a_layer_that_differs_are_whole(show: Show, size: tuple[int, int]) -> None:
    torch = 10**15
    first, *rest = large(20).layers
    layers = (first, *(replace(row, work={"tf": torch + 1, "torch": torch}) for row in rest))
    page = show(replace(large(20), layers=layers))
    page.resize(*size, phone=size != DESKTOP)
    page.run("return new Promise(requestAnimationFrame)")
    assert f"tf {torch + 1:,} / torch {torch:,}" in [row[1] for row in page.rows("#tree")]
    assert page.run(CUT) == []
