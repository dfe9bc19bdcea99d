"""The page as its reader has it: what it shows, read from the document, and what a hand does to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

TAB, ENTER, ESCAPE, SPACE, SHIFT = "\ue004", "\ue007", "\ue00c", "\ue00d", "\ue008"
PAGE_UP, PAGE_DOWN, END, HOME = "\ue00e", "\ue00f", "\ue010", "\ue011"
LEFT, UP, RIGHT, DOWN = "\ue012", "\ue013", "\ue014", "\ue015"
DESKTOP, PHONE, NARROW = (1280, 900), (390, 844), (360, 740)

READ = """
const own = (item, part) => item.querySelector(':scope > .row > .' + part);
const text = (item, part) => own(item, part)?.textContent.trim();
const openAll = (item) => {
  const button = item.querySelector(':scope > button.opens');
  if (button?.getAttribute('aria-expanded') === 'false') button.click();
  return [...item.querySelectorAll(':scope > .inside > ol.nested > li')];
};
return [...document.querySelectorAll('#waterfall > ol > li')].map((item) => ({
  name: text(item, 'name'), amount: text(item, 'amount'), kind: item.className,
  parts: openAll(item).map((part) => ({
    name: own(part, 'name').querySelector('bdi')?.textContent ?? text(part, 'name'), amount: text(part, 'amount'),
    kind: part.className,
    lines: openAll(part).map((line) => ({
      name: own(line, 'name').querySelector('bdi')?.textContent, amount: text(line, 'amount')})),
  })),
}));
"""
PICK = """
for (const [id, value] of Object.entries(arguments[0])) {
  const select = document.getElementById(id);
  select.value = value;
  select.dispatchEvent(new Event('change', {bubbles: true}));
}
"""
ROWS = """
return [...document.querySelectorAll(arguments[0] + ' .body > .vrow')]
  .sort((a, b) => a.dataset.row - b.dataset.row)
  .map((row) => [...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent));
"""


def integer(text: str) -> int:
    """The integer that is shown. Raises ValueError for anything but a grouped integer."""
    if not re.fullmatch(r"[+-]?\d{1,3}(,\d{3})*", text):
        raise ValueError(text)
    return int(text.replace(",", ""))


class Page:
    """What the driver has open."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def resize(self, wide: int, high: int, *, phone: bool = False, scale: float = 1) -> None:
        """The size of the page in CSS pixels, whatever the window's."""
        metrics = {"width": wide, "height": high, "deviceScaleFactor": scale, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name: str) -> None:
        """What the reader's system prefers: ``light`` or ``dark``."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, seconds: float = 5) -> None:
        """Until the script returns something true. Raises TimeoutException."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, seconds, 0.05).until(lambda _: self.run(script))

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def pick(self, **choices: str) -> None:
        """Choose ``from_``, ``to``, ``convention``, ``whose``, ``kind`` in their lists."""
        self.run(PICK, {name.rstrip("_"): value for name, value in choices.items()})

    def filter(self, text: str = "", whose: str = "", kind: str = "all") -> None:
        self.run(
            "for (const [id, value] of Object.entries(arguments[0])) document.getElementById(id).value = value;"
            "document.getElementById('find').dispatchEvent(new Event('input', {bubbles: true}));",
            {"find": text, "whose": whose, "kind": kind},
        )

    def waterfall(self) -> list[dict[str, Any]]:
        """Every row of the waterfall, every step opened."""
        return self.run(READ)

    def rows(self, where: str) -> list[list[str]]:
        """The rows of ``#tree`` or ``#table`` that are in the page now."""
        return self.run(ROWS, where)

    def sums(self) -> dict[str, int]:
        """What the foot of the table says, by kind of line."""
        found = self.all("#sums [data-sum]")
        return {b.get_attribute("data-sum") or "": integer(b.text) for b in found}

    def press(self, *keys: str) -> None:
        """Keys, to whatever has the focus."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self, expression: str = "id") -> Any:
        return self.run(f"return document.activeElement.{expression}")

    def width(self) -> int:
        """How wide the page wants to be, in CSS pixels."""
        return self.run("return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
