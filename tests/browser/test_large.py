"""A network of 20,000 ops: the page is there at once, and scrolls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from reconcile.core.conventions import BUILT_IN
from tests.browser.page import END, HOME, Page, integer
from tests.browser.results import PER_LAYER, large
from tests.report import samples

Show = Callable[..., Page]
OPS = 20_000
RATIO = 5
"""Opening the page takes at most so many times what writing it takes beside it, also while other tests use the browser's core."""


def test_20_000_ops_open_soon_and_scroll(show: Show) -> None:
    one = large(OPS)
    result = replace(one, others=tuple(replace(one, convention=BUILT_IN[name]) for name in ("all", "textbook")))
    assert [len(trace.rows) for trace in result.traces] == [OPS, OPS]
    show(samples.clean())  # the browser is awake
    start = time.monotonic()
    page = show(result)
    page.one("#waterfall .opens").click()
    page.one("#waterfall .part > .opens").click()
    shown = page.text("#waterfall .part .part .name")
    whole, made = time.monotonic() - start, _made(result)
    assert shown == "stage0.block0.dense0"
    assert page.run("return performance.getEntriesByName('ready')[0].startTime") < 1000 * RATIO * made
    assert whole - made < RATIO * made

    page.filter()
    layers = OPS // PER_LAYER
    lines = 2 * OPS + 3 * layers + layers + len(range(0, layers, 7))
    assert page.text("#sums").startswith(f"{lines:,} lines")
    assert len(page.rows("#table")) < 100
    page.run("document.querySelector('#table .body > .vrow').focus()")
    page.press(END)
    assert page.focused("getAttribute('aria-rowindex')") == str(lines + 1)
    assert len(page.rows("#table")) < 100
    page.press(HOME)
    page.run("const v = document.querySelector('#table .viewport'); v.scrollTop = v.scrollHeight / 2")
    page.run("return new Promise(requestAnimationFrame)")
    middle = page.rows("#table")[len(page.rows("#table")) // 2]
    assert middle[0].startswith("stage")
    start = time.monotonic()
    page.one("#table .head .amount button").click()
    assert time.monotonic() - start < RATIO * made


def test_a_long_list_says_what_the_rest_adds_up_to(show: Show) -> None:
    """The layers that a fold opens to."""
    page = show(large(4000))
    for _ in range(2):
        steps = page.waterfall()[1:-1]
        (booked,) = (step for step in steps if step["name"] == "outside-convention")
        (fold,) = booked["parts"]
        amounts = [integer(part["amount"]) for part in fold["lines"]]
        assert sum(amounts) == integer(fold["amount"]) == integer(booked["amount"])
        page.one("#waterfall .rest button").click()
    assert len(amounts) > 41


def _made(result: object) -> float:
    """Seconds that making the page, not opening it, takes."""
    from reconcile.engine.answer import Answer
    from reconcile.report.page import to_html

    assert isinstance(result, Answer)
    start = time.monotonic()
    to_html(result)
    return time.monotonic() - start
