"""Pictures of the page for the documents: ``python -m tests.browser.pictures FOLDER`` (``make screenshots``).

The same records give the same pictures with the same Chromium and fonts (Noto Sans, where it is installed).
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from reconcile.report.page import to_html
from tests.browser.chromium import chromium
from tests.browser.page import PHONE, Page
from tests.browser.results import COMMAND, gru_demo

WIDE = (1280, 1475)
LIMIT = 300_000
"""Bytes that a picture in the repository may have."""


def save(page: Page, file: Path) -> None:
    """What is in sight, with few colours: text and flat bars need no more."""
    shot = Image.open(io.BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")
    shot.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    if file.stat().st_size > LIMIT:
        raise ValueError(f"{file.name} has {file.stat().st_size:,} bytes, more than {LIMIT:,}")


def to(page: Page, section: str) -> None:
    """Scroll to a section, at once, and leave the pointer nowhere."""
    page.run("document.getElementById(arguments[0]).scrollIntoView({behavior: 'instant'})", section)


def take(page: Page, url: str, folder: Path) -> None:
    """All of them."""
    for name, scheme in (("page", "light"), ("page_dark", "dark")):
        page.resize(*WIDE)
        page.scheme(scheme)
        page.driver.get(url)
        page.run("document.querySelectorAll('#waterfall .step > .opens')[2].click()")
        save(page, folder / f"{name}.png")
    page.scheme("light")
    page.resize(1280, 860)
    page.driver.get(url)
    to(page, "layers")
    page.run("document.querySelectorAll('#waterfall .step > .opens')[1].click()")
    page.run("document.querySelector('#waterfall .part > .opens').click()")
    page.run("document.querySelector('#waterfall .line button').click()")
    save(page, folder / "page_evidence.png")
    page.resize(*PHONE, phone=True, scale=2)
    page.driver.get(url)
    to(page, "statement")
    save(page, folder / "page_phone.png")


def main(folder: str) -> None:
    """Take every picture anew."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "gru_demo.html"
        file.write_text(to_html(gru_demo(), None, COMMAND), encoding="utf-8")
        with chromium(Path(place) / "profile") as driver:
            take(Page(driver), file.as_uri(), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
