"""The waterfall: any two ends, the same lines as the reports have, and every total adds up as it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest

from reconcile.core.causes import State
from reconcile.core.escaping import escape_line
from reconcile.core.results import Residual, Statement
from reconcile.engine.answer import Answer
from reconcile.engine.statements import reverse_statement, statement_between
from reconcile.report import foot
from reconcile.report.view import state_word
from tests.browser.page import Page, integer
from tests.browser.results import gru_demo
from tests.outside import three
from tests.report import samples

Show = Callable[..., Page]
EXCESS = 2 * samples.WRONG


def cancelling() -> Answer:
    """thop and flop_counter report the same excess at `loop`: their residuals cancel on the way from one to the other."""
    result = samples.unexplained()
    rest = Residual("loop", -EXCESS, "the rule of aten.gru does not hold here")

    def off(s: Statement) -> Statement:
        if s.to == "flop_counter":
            return reverse_statement(off(reverse_statement(s)))
        if s.from_ != "flop_counter":
            return s
        assert s.from_total is not None
        total = s.from_total + EXCESS
        return replace(s, state=State.UNEXPLAINED, from_total=total, residual=-EXCESS, residuals=(rest,))

    ledgers = []
    for x in result.ledgers:
        if x.counter == "flop_counter":
            entries = tuple(e._replace(value=e.value + EXCESS) if e.layer == "loop" else e for e in x.entries)
            total = sum(e.value for e in entries)
            x = replace(x, state=State.UNEXPLAINED, total=total, normalised_total=total, entries=entries)
        ledgers.append(x)
    dense, loop = result.layers
    counters = {**loop.counters, "flop_counter": loop.counters["flop_counter"] + EXCESS}
    loop = replace(loop, counters=counters, residuals={**loop.residuals, "flop_counter": -EXCESS})
    statements = tuple(off(s) for s in result.statements)
    return replace(result, ledgers=tuple(ledgers), layers=(dense, loop), statements=statements)


RUNS = {sample.__name__: sample for sample in samples.PAIRED}
RUNS |= {"everything": samples.everything, "cancelling": cancelling, "gru_demo": gru_demo, "three": three}


def names(result: Answer) -> list[str]:
    return [*(x.counter for x in result.ledgers), *(t.name for t in result.traces)]


def sums(statement: Statement) -> dict[tuple[str, str], int]:
    """Amounts by cause and layer, the residual's among them."""
    lines = [(a.cause.value, a.layer, a.amount) for a in statement.adjustments]
    lines += [("residual", r.layer, r.amount) for r in statement.residuals]
    found: dict[tuple[str, str], int] = {}
    for what, layer, amount in lines:
        key = (what, escape_line(layer) or "(no layer)")
        found[key] = found.get(key, 0) + amount
    return found


def read(page: Page) -> tuple[int, int, dict[tuple[str, str], int]]:
    """Both totals and the amounts by cause and layer, after adding up everything that is shown.

    Residuals of a layer that cancel are shown, as lines of a part that is 0; the engine drops such a part.
    """
    first, *steps, last = page.waterfall()
    found: dict[tuple[str, str], int] = {}
    for step in steps:
        parts = step["parts"]
        assert integer(step["amount"]) == sum(integer(part["amount"]) for part in parts)
        for part in parts:
            if part["lines"]:
                assert integer(part["amount"]) == sum(integer(line["amount"]) for line in part["lines"])
            amount = integer(part["amount"])
            if amount or step["name"] != "residual":
                found[step["name"], part["name"]] = amount
    start, end = integer(first["amount"]), integer(last["amount"])
    assert start + sum(integer(step["amount"]) for step in steps) == end
    assert steps[-1]["name"] == "residual"
    return start, end, found


@pytest.mark.parametrize("run", RUNS)
def test_between_any_two_ends_it_is_the_statement_of_the_reports(show: Show, run: str) -> None:
    result = RUNS[run]()
    page = show(result)
    joined = 0
    for view in (result, *result.others):
        page.pick(convention=view.convention.name)
        for from_, to in permutations(names(result), 2):
            page.pick(from_=from_, to=to)
            said = statement_between(view, from_, to)
            assert page.text("#statement-title") == f"From {from_} to {to}"
            if said is None or said.residual is None:
                trouble = page.text("#reading")
                assert said is None or trouble == f"{said.state.value.replace('_', ' ')}: {said.reason}"
                continue
            assert read(page) == (said.from_total, said.to_total, sums(said)), (view.convention.name, from_, to)
            assert page.text("#reading .chip") == state_word(said.state.value)
            joined += 1
    assert joined


def test_residuals_that_cancel_are_still_shown(show: Show) -> None:
    result = cancelling()
    foot.check(result)
    page = show(result, anchor="#from=thop&to=flop_counter")
    assert page.text("#reading .chip") == "unexplained"
    (part,) = page.waterfall()[-2]["parts"]
    assert (part["name"], part["amount"]) == ("loop", "0")
    assert sorted(integer(line["amount"]) for line in part["lines"]) == [-EXCESS, EXCESS]


def test_another_pair_changes_the_waterfall_and_the_address(show: Show) -> None:
    from selenium.webdriver.support.select import Select

    page = show(gru_demo())
    before = page.waterfall()
    assert (before[0]["name"], before[-1]["name"]) == ("tf.profiler@frozen", "thop")
    Select(page.one("#from")).select_by_visible_text("fvcore")
    after = page.waterfall()
    assert after != before
    assert [(after[0]["name"]), after[-1]["name"]] == ["fvcore", "thop"]
    page.one("#swap").click()
    assert [row["name"] for row in page.waterfall()][:: len(after) - 1] == ["thop", "fvcore"]
    Select(page.one("#convention")).select_by_visible_text("all")
    shown = page.waterfall()
    page.wait("return location.hash === '#from=thop&to=fvcore&convention=all'")
    page.driver.refresh()
    assert page.waterfall() == shown


def test_the_other_end_gives_way(show: Show) -> None:
    page = show(samples.clean())
    page.pick(to=samples.FROZEN)
    assert page.text("#statement-title") == f"From thop to {samples.FROZEN}"


def test_an_address_with_names_that_are_not_there_is_left_alone(show: Show) -> None:
    page = show(samples.clean(), anchor="#from=nothing&to=%3Cscript%3E&convention=x")
    assert page.text("#statement-title") == f"From {samples.FROZEN} to thop"


def test_a_counter_of_the_table_leads_to_its_statement(show: Show) -> None:
    page = show(samples.clean())
    page.one("#counters button[data-counter=fvcore]").click()
    assert page.text("#statement-title") == f"From fvcore to {samples.TORCH}"


def test_integers_stay_exact_past_2_to_the_53(show: Show) -> None:
    big = 2**61 + 1
    result = samples.clean()
    start = 2 * samples.DENSE.mac
    line = samples.line(samples.Cause.OP_NOT_COUNTED, "loop", "fvcore", big - start, "aten.gru")
    own = samples.statement("fvcore", samples.TORCH, start, big, line)
    page = show(replace(result, statements=(own,)), anchor=f"#from=fvcore&to={samples.TORCH}")
    assert read(page) == (start, big, {("op-not-counted", "loop"): big - start})


def test_what_stays_unexplained_is_seen(show: Show) -> None:
    page = show(samples.unexplained(), anchor=f"#from=thop&to={samples.TORCH}")
    residual = page.one("#waterfall > ol > li.residual")
    assert "left" in residual.get_attribute("class")
    assert residual.find_element("css selector", ".amount").text == f"-{2 * samples.WRONG}"
    assert "rule broken at layer loop" in page.text("section.trouble")
    assert page.text(".verdict:not([hidden]) .sum").endswith("1 unexplained.")
    assert "No number to publish for PyTorch" in page.text(".verdict:not([hidden])")


def test_the_evidence_opens_from_a_line_and_the_focus_comes_back(show: Show) -> None:
    page = show(gru_demo(), anchor="#from=thop&to=trace@torch")
    page.waterfall()
    page.one("#waterfall .line button").click()
    shown = page.text("#detail")
    for words in (
        "outside-convention",
        "torch.nn.modules.rnn.GRU",
        "(1, 97, 4064)",
        "thop/rnn_hooks.py:124",
        "1 × ran",
    ):
        assert words in shown
    page.press("\ue00c")
    assert page.run("return document.getElementById('detail').open") is False
    assert page.run("return document.activeElement.closest('li').className") == "line"


def test_a_run_without_anything_says_so(show: Show) -> None:
    page = show(samples.empty())
    assert page.text("#reading") == "There are no two ends to choose in this run."
    assert "No counter was run." in page.text("#counters")


def test_a_convention_of_ones_own_with_any_name_can_be_chosen(show: Show) -> None:
    own = replace(samples.clean(), convention=replace(samples.BUILT_IN["matmul"], name="<b>\u202e mine", meaning=""))
    page = show(replace(samples.clean(), others=(own,)))
    page.pick(convention=escape_line(own.convention.name))
    assert page.text("header .note:not([hidden])") == f"A FLOP here is {escape_line(own.convention.name)}: mac 2"
    assert page.text("#reading .chip") == "explained"


def test_every_convention_of_the_run_can_be_chosen(show: Show) -> None:
    page = show(gru_demo())
    assert [option.text for option in page.all("#convention option")] == ["matmul", "all", "textbook"]
    page.pick(convention="textbook")
    assert "K - 1 adds" in page.text("header .note:not([hidden])")
    (textbook,) = (view for view in gru_demo().others if view.convention.name == "textbook")
    work = textbook.traces[0].totals["textbook"]
    assert f"{work:,}" in page.text("#counters .scroll:not([hidden])")
    page.pick(to="trace@tf")
    assert integer(page.waterfall()[-1]["amount"]) == work


def test_every_bar_reaches_the_next(show: Show) -> None:
    """The line from the end of a bar begins at its lower edge and meets the row below, also beside an empty residual."""
    page = show(gru_demo())
    gaps = page.run(
        """
        const fills = [...document.querySelectorAll('.waterfall > li > .row .fill')];
        return fills.slice(0, -1).map((fill, i) => {
          const after = getComputedStyle(fill, '::after');
          const start = fill.classList.contains('none') ? fill.getBoundingClientRect().top : fill.getBoundingClientRect().bottom;
          return fills[i + 1].getBoundingClientRect().top - (start + parseFloat(after.height));
        });
        """
    )
    assert [gap for gap in gaps if gap > 1] == []
