"""The tree of layers and the table of lines: they sort, filter, open, and add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from reconcile.engine.answer import Answer
from tests.browser.page import DOWN, END, ENTER, ESCAPE, HOME, LEFT, RIGHT, Page, integer
from tests.browser.results import gru_demo, large
from tests.report import samples

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

Show = Callable[..., Page]
LAYER, OP, COUNTER, LINE, AMOUNT = range(5)


def column(page: Page, index: int) -> list[str]:
    return [row[index] for row in page.rows("#table")]


def header(page: Page, name: str) -> str:
    return page.one(f"#table [role=columnheader].{name}").get_attribute("aria-sort") or ""


def test_reported_causes_and_residual_add_up_to_what_ran(show: Show) -> None:
    for result in (samples.clean(), samples.unexplained(), gru_demo()):
        page = show(result)
        for view in (result, *result.others):
            page.pick(convention=view.convention.name)
            for ledger in view.ledgers:
                (trace,) = (t for t in view.traces if t.framework == ledger.framework)
                page.filter(whose=ledger.counter)
                sums = page.sums()
                assert sums["reported"] == ledger.normalised_total
                assert sum(sums.values()) == trace.totals[view.convention.name]
                page.filter(whose=trace.name)
                assert page.sums() == {"ran": trace.totals[view.convention.name]}


def test_the_sum_is_that_of_the_rows_above_it(show: Show) -> None:
    page = show(samples.clean())
    page.filter(kind="differences")
    assert "cause" not in page.sums()  # of several counters: their sum says nothing
    page.filter(whose="thop", kind="differences")
    assert sum(integer(text) for text in column(page, AMOUNT)) == page.sums()["cause"]
    assert page.text("#sums").startswith(f"{len(column(page, AMOUNT))} line")


def test_sorting(show: Show) -> None:
    page = show(gru_demo())
    page.filter()
    button = page.one("#table .head .amount button")
    assert [header(page, name) for name in ("layer", "amount")] == ["ascending", "none"]
    button.click()
    amounts = [integer(text) for text in column(page, AMOUNT)]
    assert header(page, "amount") == "descending"
    assert header(page, "layer") == "none"
    assert amounts == sorted(amounts, reverse=True)
    button.click()
    amounts = [integer(text) for text in column(page, AMOUNT)]
    assert header(page, "amount") == "ascending"
    assert amounts == sorted(amounts)
    page.one("#table .head .op button").click()
    assert column(page, OP) == sorted(column(page, OP))
    page.one("#table .head .whose button").click()
    assert column(page, COUNTER)[0] == "tf.profiler@function"


def test_filtering(show: Show) -> None:
    page = show(gru_demo())
    page.one("#find").send_keys("GRU")
    assert column(page, LAYER)
    assert [row for row in page.rows("#table") if "gru" not in (row[LAYER] + row[OP]).lower()] == []
    page.filter(kind="loop-counted-once")
    assert set(column(page, LINE)) == {"loop-counted-once"}
    page.filter(whose="thop", kind="reported")
    assert set(column(page, COUNTER)) == {"thop"}
    assert page.sums() == {"reported": gru_demo().ledgers[3].normalised_total}
    page.filter(text="nothing has this name")
    assert page.rows("#table") == []
    assert page.text("#sums") == "0 lines"


def test_a_name_in_quotes_is_one_layer_and_no_other(show: Show) -> None:
    page = show(large(400))
    page.filter(text='"stage0.block0.dense1"')
    assert set(column(page, LAYER)) == {"stage0.block0.dense1"}
    page.filter(text="stage0.block1")
    assert len(set(column(page, LAYER))) > 1


def test_a_row_opens_what_stands_behind_it(show: Show) -> None:
    page = show(gru_demo())
    page.filter(whose="trace@torch", kind="ran")
    page.one("#table .body > .vrow").click()
    assert "mac 6,307,328" in page.text("#detail")
    page.press(ESCAPE)
    page.filter(whose="thop", kind="reported")
    page.one("#table .body > .vrow").click()
    assert "6,307,328 MAC" in page.text("#detail")
    assert "12,614,656 FLOP" in page.text("#detail")


def tree(page: Page) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in page.rows("#tree")}


def test_the_tree_shows_each_counters_ratio(show: Show) -> None:
    page = show(gru_demo())
    rows = tree(page)
    assert list(rows) == ["conv", "gru", "dense"]
    assert rows["gru"] == ["232,427,520", "0.010", "0.010", "1.011", "1.001", "0", "1"]
    kinds = [cell.get_attribute("class").split()[1] for cell in page.all("#tree .body > .vrow:nth-child(2) .heat")]
    assert kinds == ["below", "below", "above", "above", "below", "exact"]


def said(cell: WebElement) -> int:
    """The counter's value, of the words that stand behind a cell's ratio: ``96 of 384 FLOP``."""
    return integer((cell.get_attribute("title") or "").partition(" of ")[0])


def test_a_node_is_the_sum_of_its_children(show: Show) -> None:
    page = show(large(800))
    page.one("#open-layers").click()
    rows = page.all("#tree .body > .vrow")
    levels = [int(row.get_attribute("aria-level")) for row in rows]
    titles = [[said(cell) for cell in row.find_elements("css selector", ".heat")] for row in rows]
    assert set(levels) >= {1, 2, 3, 4}
    checked = 0
    for i, level in enumerate(levels):
        end = next((j for j in range(i + 1, len(levels)) if levels[j] <= level), None)
        children = [titles[j] for j in range(i + 1, end or i + 1) if levels[j] == level + 1]
        if children:
            assert titles[i] == [sum(column) for column in zip(*children, strict=True)]
            checked += 1
    assert checked > 3


def test_many_names_without_a_dot_are_levels_by_underscores(show: Show) -> None:
    page = show(large(800, "_"))
    page.one("#open-layers").click()
    names = [cell.get_attribute("title") for cell in page.all("#tree .body .who bdi")]
    assert names[:5] == ["stage0", "block0,7,14", "block0", "dense0,7", "dense0"]  # fvcore misses every seventh layer


def odd_one(result: Answer, place: int) -> Answer:
    """One more FLOP in one line of the first statement."""
    first, *others = result.statements
    lines = list(first.adjustments)
    lines[place] = replace(lines[place], amount=lines[place].amount - 1)
    assert first.from_total is not None
    return replace(
        result, statements=(replace(first, from_total=first.from_total + 1, adjustments=tuple(lines)), *others)
    )


def test_opened_folds_are_the_layers(show: Show) -> None:
    """Every layer is in the tree once, below a fold or not, and a fold says how many and the work of one."""
    result = large(96)
    page = show(result)
    page.resize(1280, 3000)
    page.run("document.querySelector('#tree .viewport').style.maxHeight = 'none'")
    page.one("#open-layers").click()
    rows = page.all("#tree .body > .vrow")
    leaves = [row for row in rows if row.get_attribute("aria-expanded") is None]
    assert len(leaves) == len(result.layers) == 24
    work = [row.work["tf"] for row in result.layers]
    assert [integer(leaf.find_element("css selector", ".work").text) for leaf in leaves] == work
    folds = [row for row in rows if "×" in row.find_element("css selector", ".who").text]
    assert folds
    for row in folds:
        count, _, one = row.find_element("css selector", ".who small").text.partition(" × ")
        assert int(count) * integer(one) == integer(row.find_element("css selector", ".work").text)


def test_one_odd_layer_stands_beside_its_fold(show: Show) -> None:
    """tf.profiler counts as many layers alike as there are but one."""
    page = show(odd_one(large(96, "_"), 5))
    page.pick(from_=samples.FROZEN, to=samples.TF)
    (step,) = (step for step in page.waterfall() if step["name"] == "outside-convention")
    amounts = {part["name"]: integer(part["amount"]) for part in step["parts"]}
    each = -4 * samples.BIAS
    assert amounts == {
        "stage0_block0_dense5": each - 1,
        "stage0_block1_dense5": each,
        "stage0_block0,1_dense4,6..9": 10 * each,
        "stage0_block0..2_dense0..3": 12 * each,
    }
    page.run(
        "document.querySelectorAll('#waterfall .folded > button[aria-expanded=false]').forEach((button) => button.click())"
    )
    opened = page.all("#waterfall [data-step=outside-convention] .part:not(.folded)")
    assert len(opened) == 24
    assert sum(integer(part.find_element("css selector", ".amount").text) for part in opened) == 24 * each - 1


def test_the_tree_by_keyboard(show: Show) -> None:
    page = show(large(800))
    page.run("document.querySelector('#tree .body > .vrow').focus()")
    level = "getAttribute('aria-level')"
    start = len(page.rows("#tree"))
    if page.focused("getAttribute('aria-expanded')") == "true":
        page.press(LEFT)
        assert len(page.rows("#tree")) < start
    page.press(RIGHT)
    assert page.focused("getAttribute('aria-expanded')") == "true"
    page.press(RIGHT)
    assert page.focused(level) == "2"
    page.press(RIGHT, RIGHT)  # the blocks that are alike, and the first of them
    assert page.focused(level) == "3"
    page.press(RIGHT, RIGHT)
    assert page.focused(level) == "4"
    assert page.focused("querySelector('bdi').textContent") == "dense0,7"
    page.press(RIGHT, RIGHT, DOWN)
    assert page.focused(level) == "5"
    page.press(ENTER)
    assert page.text("#detail-title") == "stage0.block0.dense7"
    page.press(ESCAPE)
    page.press(LEFT, LEFT)
    assert page.focused("getAttribute('aria-expanded')") == "false"
    assert page.focused(level) == "4"
    page.press(END)
    assert page.focused("getAttribute('aria-rowindex')") == page.one("#tree .viewport").get_attribute("aria-rowcount")
    page.press(HOME)
    assert page.focused("dataset.row") == "0"


def test_a_layers_books_add_up_and_lead_to_its_lines(show: Show) -> None:
    page = show(gru_demo())
    page.one("#tree .body > .vrow:nth-child(2)").click()
    tables = page.all("#detail table.books")
    assert len(tables) == 6
    for table in tables:
        *lines, work = [integer(cell.text) for cell in table.find_elements("css selector", "td.n")]
        assert sum(lines) == work == 232_427_520
    page.all("#detail > button")[-1].click()
    assert page.one("#find").get_property("value") == '"gru"'
    assert set(column(page, LAYER)) == {"gru"}
