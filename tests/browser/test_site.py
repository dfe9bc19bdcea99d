"""axe-core finds no violation in any page of the site (`make site` builds it), and a browser fetches nothing for it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.page import Page
from tests.browser.test_axe import violations

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BUILT = Path(__file__).resolve().parents[2] / "build" / "html"
OTHERS = ("gru_demo.html", "scorecard.html", "404.html")
"""Pages of their own, which test_axe.py has, and the one that only a server shows: it names its parts from the server's root."""
PARTS = 8
TEMPLATES = {"reports", "causes", "counters", "conventions", "scorecard"}
"""Folders whose pages the tool writes, all alike: `make site` opens each, and CI three of them."""
DARK = (
    "index.html",
    "docs/usage/index.html",
    "reports/index.html",
    "reports/audit/index.html",
    "reports/llama/index.html",
)


def pages() -> list[Path]:
    return sorted(path for path in BUILT.rglob("*.html") if path.name not in OTHERS)


def kinds() -> list[Path]:
    """Each page that a hand wrote, and of those that a template makes the largest and the ends."""
    folders: dict[Path, list[Path]] = defaultdict(list)
    for path in pages():
        folders[path.parent.parent].append(path)
    many = {folder: paths for folder, paths in folders.items() if folder.name in TEMPLATES}
    ends = [{paths[0], paths[-1], max(paths, key=lambda p: p.stat().st_size)} for paths in many.values()]
    return sorted({path for path in pages() if path.parent.parent not in many}.union(*ends))


def wrong(driver: Chrome, paths: list[Path]) -> dict[str, list[object]]:
    found = {}
    for path in paths:
        driver.get(path.as_uri())
        if left := violations(driver):
            found[str(path.relative_to(BUILT))] = left
    return found


@pytest.mark.parametrize("part", range(PARTS // 2))
def test_axe_finds_nothing_on_a_page_of_each_kind(driver: Chrome, part: int) -> None:
    assert len(pages()) > 100, f"there is no site in {BUILT}: `make site` builds it"
    assert {path.parent.parent.name for path in kinds()} >= TEMPLATES
    assert wrong(driver, kinds()[part :: PARTS // 2]) == {}


@pytest.mark.heavy
@pytest.mark.parametrize("part", range(PARTS))
def test_axe_finds_nothing_on_any_page(driver: Chrome, part: int) -> None:
    assert wrong(driver, pages()[part::PARTS]) == {}


def test_nor_in_the_dark(driver: Chrome) -> None:
    Page(driver).scheme("dark")
    assert wrong(driver, [BUILT / name for name in DARK]) == {}


@pytest.mark.parametrize("name", DARK)
def test_a_browser_fetches_nothing_from_elsewhere(driver: Chrome, name: str) -> None:
    from tests.browser import chromium

    driver.get((BUILT / name).as_uri())
    driver.execute_async_script("setTimeout(arguments[0], 500)")
    assert [url for url in chromium.requests(driver) if not url.startswith(("file:", "data:", "blob:"))] == []


MARKED = """
return [...document.querySelectorAll('article pre > code, article .md-typeset__scrollwrap')]
  .filter((part) => part.scrollWidth > part.clientWidth + 1)
  .map((part) => getComputedStyle(part).backgroundImage.includes('gradient'));
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", DARK)
def test_what_goes_on_sideways_has_a_shadow_there(driver: Chrome, name: str, scheme: str) -> None:
    page = Page(driver)
    page.scheme(scheme)
    page.resize(390, 844)
    driver.get((BUILT / name).as_uri())
    assert set(page.run(MARKED)) == {True}
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0
