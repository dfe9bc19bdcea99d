"""One browser for all tests here. Whatever a test does with a page, the console stays silent and nothing is requested.

selenium is imported in fixtures alone: without it, this folder can be collected and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.engine.answer import Answer
from reconcile.report.page import to_html
from tests.browser.page import DESKTOP, Page

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    from tests.browser.chromium import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def driver(browser: Chrome) -> Chrome:
    """The browser on an empty page, at the size of a desktop, in the light."""
    from tests.browser import chromium

    browser.get("about:blank")
    Page(browser).resize(*DESKTOP)
    Page(browser).scheme("light")
    chromium.requests(browser)
    chromium.complaints(browser)
    return browser


@pytest.fixture
def opened(driver: Chrome, tmp_path: Path) -> Callable[[str], Page]:
    """``opened(text)``: a page of this text, opened from a file."""

    def open_text(text: str) -> Page:
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        driver.get(file.as_uri())
        return Page(driver)

    return open_text


@pytest.fixture
def show(driver: Chrome, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """``show(result)``: its page, opened from a file. In the end nothing was asked for but that file, and the console
    said nothing."""
    from tests.browser import chromium

    opened = []

    def shown(result: Answer, command: str = "reconcile run --model toy", anchor: str = "") -> Page:
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(to_html(result, None, command), encoding="utf-8")
        opened.append(file.as_uri())
        driver.get(opened[-1] + anchor)
        return Page(driver)

    yield shown
    asked = [url for url in chromium.requests(driver) if not url.startswith("data:,")]
    assert {url.partition("#")[0] for url in asked} == set(opened)
    assert chromium.complaints(driver) == []
