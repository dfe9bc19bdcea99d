"""The Markdown report says what was found, in order, and shows hostile names as text."""

from __future__ import annotations

from dataclasses import replace

from reconcile.report.markdown import to_markdown
from tests.report import samples
from tests.report.tables import Page, Table, amount, read

HEADLINE = f"From {samples.FROZEN} to thop"


def under(page: Page, heading: str) -> Table:
    return next(t for t in page.tables if t.heading == heading)


def test_the_headline_is_a_statement_in_booking_order() -> None:
    table = under(read(to_markdown(samples.full())), HEADLINE)
    lines = [row for row in table.rows if row[0]]
    assert [row[0] for row in lines] == [samples.FROZEN, "loop-counted-once", "outside-convention", "residual", "thop"]
    result = samples.full().statement(samples.FROZEN, "thop")
    assert [amount(row[-1]) for row in lines] == [
        result.from_total,
        (samples.T - 1) * samples.MM_STEP,
        -samples.BIAS + 2 * samples.T * samples.GATES,
        0,
        result.to_total,
    ]
    layers = [(row[1], row[2], row[3]) for row in table.rows if not row[0]]
    assert layers == [("dense", "BiasAdd", f"-{samples.BIAS}"), ("loop", "GRU", f"+{2 * samples.T * samples.GATES}")]


def test_every_counter_has_a_row_and_a_statement_or_a_reason() -> None:
    result = samples.full()
    page = read(to_markdown(result))
    assert under(page, "Counters").column("counter") == [x.counter for x in result.ledgers]
    assert "the worker was killed after 600 s" in under(page, "Counters").rows[0][-1]
    for x in result.ledgers:
        home = {"tf": samples.TF, "torch": samples.TORCH}[x.framework]
        assert f"{x.counter} → {home}" in page.headings


def test_what_was_left_out_is_listed() -> None:
    text = read(to_markdown(samples.full())).text
    assert f"fvcore says it did not support: aten::gru × 1, aten::tanh × {samples.T}" in text
    assert "ops that do no arithmetic: Identity × 7, Reshape × 2" in text
    assert "trace@tf, integer bookkeeping, not floating-point work: AddV2 × 3" in text


def test_real_differences_are_itemised_op_by_op() -> None:
    page = read(to_markdown(samples.everything()))
    booked, kinds = [t for t in page.tables if t.heading == "Real differences between the two models"]
    extra = samples.T * samples.EXTRA.mul
    assert booked.rows[1] == ["implementation-differs", "loop", "Mul", "mul", "", f"-{extra}"]
    assert kinds.rows == [["loop", "mul", f"{extra}", "0", f"-{extra}"]]


def test_hostile_names_are_text() -> None:
    result = replace(samples.renamed(samples.unexplained(), "loop", samples.NASTY), model="<img src=x>|`x`")
    page = read(to_markdown(result, command="x ``` <b>"))
    allowed = ("<br>", "<details>", "</details>")
    assert [tag for tag in page.html if not tag.startswith(allowed)] == []
    row = under(page, "Layers").rows[1]
    assert row[0].startswith("<script>alert(1)</script>|a\\n`b` *c* __d__ [e](f)")
    assert len(row) == len(under(page, "Layers").header)
    assert page.headings[0].startswith("<img src=x>|`x`")


def test_a_run_that_found_nothing_is_a_report_too() -> None:
    page = read(to_markdown(samples.empty()))
    assert "No counter was run." in page.text
