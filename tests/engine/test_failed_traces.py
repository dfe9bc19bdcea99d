"""A trace that fails costs the statements that need it and nothing else: the run finishes, and every report is written."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.core.errors import EXIT_UNEXPLAINED
from reconcile.core.option import FORMATS
from reconcile.drift import baselines
from reconcile.engine.answer import Answer
from reconcile.engine.booking import flops_per_unit
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected, settle_each
from reconcile.report import reports
from reconcile.report.pictures.charts import waterfall
from reconcile.report.view import default_statement
from tests.drift.takes import COMMITTED
from tests.report.terminal.test_screen import shown

SENTENCE = "the tracer met a node that it cannot read"
WHOLE = baselines.load(COMMITTED).collected
CASES = [("tf",), ("torch",), ("tf", "torch")]


def planted(failing: tuple[str, ...], *, aligned: bool = True) -> Collected:
    """gru_demo as both frameworks ran it, with failing traces; without a table of layers, they are aligned automatically."""
    assert {trace.framework for trace in WHOLE.traces} == {"tf", "torch"}
    traces = tuple(
        Missing("trace", trace.framework, State.FAILED, SENTENCE) if trace.framework in failing else trace
        for trace in WHOLE.traces
    )
    return replace(WHOLE, traces=traces, meta=dict(WHOLE.meta, **({} if aligned else {"layers": []})))


@cache
def settled(failing: tuple[str, ...], *, aligned: bool = True) -> Answer:
    return settle_each(planted(failing, aligned=aligned), Conventions(MATMUL))


@pytest.mark.parametrize("aligned", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["a pair", "factories"])
@pytest.mark.parametrize("failing", CASES, ids="+".join)
def test_every_report_is_written_and_names_what_failed(failing: tuple[str, ...], aligned: bool) -> None:
    result = settled(failing, aligned=aligned)
    assert result.exit_code == EXIT_UNEXPLAINED
    written = reports.render(result, FORMATS)
    assert tuple(written) == FORMATS
    texts = {**{name: str(text) for name, text in written.items()}, "terminal": shown(result)}
    named = [SENTENCE, *(ledger.counter for ledger in result.ledgers)]
    lacking = {
        name: [text for text in named if text not in " ".join(whole.replace("\\u0040", "@").split())]
        for name, whole in texts.items()
        if name != "csv"  # it has numbers and no sentences
    }
    assert {name: texts for name, texts in lacking.items() if texts} == {}
    assert [ledger.counter for ledger in result.ledgers if ledger.counter not in texts["csv"]] == []


@pytest.mark.parametrize("failing", CASES, ids="+".join)
def test_the_other_side_stands_and_what_needs_the_trace_is_blank(failing: tuple[str, ...]) -> None:
    result, before = settled(failing), settled(())
    lost = {f"trace@{framework}" for framework in failing}
    lost |= {ledger.counter for ledger in result.ledgers if ledger.framework in failing}
    stand = [s for s in before.statements if not lost & {s.from_, s.to}]
    assert [result.statement(s.from_, s.to) for s in stand] == stand
    blank = [s for s in result.statements if lost & {s.from_, s.to}]
    assert [
        (s.from_, s.to) for s in blank if s.residual is not None or s.state not in (State.FAILED, State.NOT_COMPARABLE)
    ] == []
    assert [(s.from_, s.to) for s in blank if SENTENCE not in s.reason] == []


@pytest.mark.parametrize("failing", CASES, ids="+".join)
def test_a_ledger_without_a_trace_keeps_its_values_by_layer(failing: tuple[str, ...]) -> None:
    sums: dict[str, int] = {}
    for row in settled(failing).layers:
        for counter, value in row.counters.items():
            sums[counter] = sums.get(counter, 0) + value
    assert sums == {
        x.counter: x.total * flops_per_unit(x.unit)  # type: ignore[union-attr]
        for x in planted(failing).ledgers
    }


def test_a_blocked_statement_shows_its_sentence_and_no_residual() -> None:
    """Both totals are known, but nothing leads from one to the other: a residual of 0 would be a lie."""
    result = settled(("tf",))
    statement = result.statement("tf.profiler@frozen", "thop")
    assert statement.from_total is not None
    assert statement.to_total is not None
    markdown = str(reports.render(result, ("md",), statement)["md"])
    section = markdown.partition("## From tf.profiler@frozen to thop")[2].partition("\n## ")[0]
    assert section.strip() == f"failed: {SENTENCE}"
    printed = shown(result, statement=statement).partition("\nFrom tf.profiler@frozen to thop\n")[2]
    assert printed.startswith(f"failed: {SENTENCE}\n")
    assert waterfall(statement) == []


@pytest.mark.parametrize("failing", CASES, ids="+".join)
def test_the_statement_shown_first_is_one_that_closes(failing: tuple[str, ...]) -> None:
    chosen = default_statement(settled(failing))
    assert chosen is not None
    assert chosen.is_closed is (len(failing) == 1)
