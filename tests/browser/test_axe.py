"""axe-core finds no violation in any page that the tool makes, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.products.audit import report
from reconcile.products.scorecard import cells as score
from reconcile.products.scorecard import page as scorecard_page
from reconcile.products.scorecard.report import Board
from reconcile.report.page import to_html
from tests.browser.page import Page
from tests.browser.results import aligned, gru_demo, large, steps
from tests.products.audit.test_summary import VERDICTS
from tests.report import samples

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def two_families() -> Board:
    return Board(
        {name: card for name, card in score.read_cards().items() if card.family in ("family_dense", "family_recurrent")}
    )


PAGES: dict[str, Callable[[], str]] = {
    "gru_demo": lambda: to_html(gru_demo(), None, "reconcile run --model gru_demo"),
    "large": lambda: to_html(large(2000), None, ""),
    "unexplained": lambda: to_html(samples.unexplained(), None, ""),
    "incomplete": lambda: to_html(samples.incomplete(), None, ""),
    "training": lambda: to_html(steps(12), None, ""),
    "aligned": lambda: to_html(aligned(12), None, ""),
    "audit": lambda: report.to_html(VERDICTS, (3, 1000), "reconcile audit claims.csv"),
    "scorecard of two families": lambda: scorecard_page.to_html(two_families()),
    "scorecard": lambda: scorecard_page.to_html(Board(score.read_cards())),
}
MARKS = {"scorecard": [pytest.mark.heavy]}
"""`make browser` opens the scorecard whole, which takes a minute and a half."""
LIMIT = 300
"""Seconds: the scorecard has thousands of cells."""
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations), (error) => done([String(error)]));
"""


def violations(driver: Chrome) -> list[Any]:
    """What axe says of the page that is shown: rule, and the elements that break it."""
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    driver.set_script_timeout(LIMIT)
    driver.execute_script(axe)
    found = driver.execute_async_script(RUN)
    return [f if isinstance(f, str) else (f["id"], [node["html"][:150] for node in f["nodes"]][:5]) for f in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, [])) for name in PAGES])
def test_axe_finds_nothing(driver: Chrome, opened: Callable[[str], Page], name: str, scheme: str) -> None:
    Page(driver).scheme(scheme)
    opened(PAGES[name]())
    assert violations(driver) == []
