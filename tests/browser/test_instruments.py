"""The tests for no requests and no messages mean something only if a request or a message would be noticed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.report.page import to_html
from tests.report import samples

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ELSEWHERE = "http://127.0.0.1:9/picture.png"


def opened(driver: Chrome, folder: Path, html: str) -> tuple[list[str], list[str]]:
    from tests.browser import chromium

    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    driver.get(file.as_uri())
    return chromium.requests(driver), chromium.complaints(driver)


def test_a_request_would_be_seen(driver: Chrome, tmp_path: Path) -> None:
    asked, said = opened(driver, tmp_path, f"<img src='{ELSEWHERE}'>")
    assert ELSEWHERE in asked
    assert said


def test_a_word_on_the_console_would_be_seen(driver: Chrome, tmp_path: Path) -> None:
    _, said = opened(driver, tmp_path, "<script>console.error('oh')</script>")
    assert [line for line in said if "oh" in line], said


def test_the_page_itself_forbids_requests_and_other_scripts(driver: Chrome, tmp_path: Path) -> None:
    more = f"<img src='{ELSEWHERE}'><script>document.title = 'taken'</script>"
    asked, said = opened(driver, tmp_path, to_html(samples.clean()).replace("<main", more + "<main", 1))
    assert ELSEWHERE not in asked
    assert driver.title == "toy: FLOP reconciliation"
    assert len([line for line in said if "Content Security Policy" in line]) == 2
