"""The page on paper, without scrolling or opening anything; and the phases and the alignment, which are printed as well."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser.page import ENTER, Page
from tests.browser.results import aligned, large, steps
from tests.report import samples

if TYPE_CHECKING:
    from reconcile.engine.answer import Answer

Show = Callable[..., Page]
BLOCKS = 12
TO_A_SHEET = 90
"""More rows than a sheet of paper has room for."""
TABLES = """
return [...document.querySelectorAll('#phases > div:not([hidden]) table')].map((table) =>
  [...table.querySelectorAll('tbody')].map((body) => ({
    shown: !body.hidden, each: body.className === 'each',
    rows: [...body.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent)),
  })));
"""


def event(page: Page, name: str) -> None:
    page.run("dispatchEvent(new Event(arguments[0]))", name)


def sheets(page: Page) -> int:
    """How many the browser prints."""
    pdf = base64.b64decode(page.driver.print_page())
    return len(re.findall(rb"/Type /Page\b", pdf))


@pytest.mark.parametrize("layers", [50, 500])
def test_every_row_is_on_paper(show: Show, layers: int) -> None:
    page = show(large(4 * layers))
    page.run("document.querySelector('#tree .body > .vrow').focus()")
    few = len(page.rows("#table"))
    lines = layers + len(range(0, layers, 7))
    assert few < min(lines, 100)
    event(page, "beforeprint")
    assert len(page.rows("#table")) == lines
    assert [row[0] for row in page.rows("#table")] == sorted(
        (row[0] for row in page.rows("#table")), key=lambda text: [int(n) for n in re.findall(r"\d+", text)]
    )
    assert page.all("#waterfall .step > .opens[aria-expanded=false]") == []
    assert page.all("#waterfall .inside:not([hidden]) .rest") == []
    assert page.run("return document.activeElement.matches('#tree .vrow')")
    event(page, "afterprint")
    assert len(page.rows("#table")) == few
    assert page.all("#waterfall .step > .opens[aria-expanded=true]") == []
    assert sheets(page) > lines / TO_A_SHEET


def test_a_step_that_was_open_stays_open(show: Show) -> None:
    page = show(samples.full())
    page.one("#waterfall .step > .opens").click()
    event(page, "beforeprint")
    event(page, "afterprint")
    assert len(page.all("#waterfall .step > .opens[aria-expanded=true]")) == 1


def integers(cells: list[str]) -> list[int]:
    return [int(cell.replace(",", "") or 0) for cell in cells[1:-1]]


def test_layers_that_repeat_are_one_row_of_phases_and_add_up(show: Show) -> None:
    page = show(steps(BLOCKS))
    (table,) = page.run(TABLES)
    *bodies, total = table
    sums = [0] * len(integers(total["rows"][0]))
    names = []
    for body in bodies:
        assert body["shown"] != body["each"]
        for row in body["rows"]:
            if not body["each"]:
                name, _, count = row[0].partition(" × ")
                names.append(name)
                sums = [a + int(count or 1) * b for a, b in zip(sums, integers(row), strict=True)]
                held = int(count or 1), integers(row)
            else:
                assert (len(body["rows"]), integers(row)) == held
    assert sums == integers(total["rows"][0])
    last = BLOCKS - 1
    assert f"blocks.0..{last - 1}.first" in names
    assert f"blocks.{last}.first" in names


def test_a_row_of_phases_opens_to_its_layers(show: Show) -> None:
    page = show(steps(BLOCKS))
    page.one("#phases .opens").send_keys(ENTER)
    (table,) = page.run(TABLES)
    assert [row[0] for row in table[1]["rows"]] == [f"blocks.{i}.first" for i in range(BLOCKS - 1)]
    assert table[1]["shown"]
    assert [body["rows"][0] for body in table[2:] if body["each"] and body["shown"]] == []
    assert page.one("#phases .opens").get_attribute("aria-expanded") == "true"
    page.one("#phases .opens").send_keys(ENTER)
    assert not page.run(TABLES)[0][1]["shown"]


@pytest.mark.parametrize(("make", "sections"), [(aligned, {"alignment"}), (steps, {"phases"}), (large, set())])
def test_the_bar_leads_to_what_is_there_and_keeps_the_choice(
    show: Show, make: Callable[[int], Answer], sections: set[str]
) -> None:
    page = show(make(BLOCKS), anchor="#convention=matmul")
    found = [link.get_attribute("href").rpartition("#")[2] for link in page.all(".bar nav a")]
    assert set(found) == {"counters", "statement", "layers", "lines", "about", *sections}
    for name in found:
        page.one(f".bar a[href='#{name}']").click()
        assert page.focused() == f"{name}-title"
    page.wait("return location.hash.includes('convention=matmul')")


def test_what_belongs_together_is_told(show: Show) -> None:
    page = show(aligned(BLOCKS))
    text = page.text("#alignment")
    assert f"Layers matched: {BLOCKS} by name+work." in text
    assert "Without a partner in tf: extra." in text
    page.one("#alignment summary").click()
    rows = page.run("return [...document.querySelectorAll('#alignment tbody tr')].map((r) => r.innerText.split('\\t'))")
    assert len(rows) == BLOCKS + 1
    assert rows[-1] == ["tf:extra", "extra", "", "no layer of torch is like it"]
    assert rows[0][1:] == [rows[0][0], f"torch.{rows[0][0]}", "name+work"]
