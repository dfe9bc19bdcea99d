"""Amounts on the terminal at any width: each is whole, and no line is wider than the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import FLOP, MAC
from reconcile.core.results import LayerRow, Residual, Statement
from reconcile.core.work import Work
from reconcile.engine.answer import Answer
from reconcile.report.terminal import screen as terminal
from tests.report import samples

CAUSES = (Cause.OUTSIDE_CONVENTION, Cause.LOOP_COUNTED_ONCE, Cause.IMPLEMENTATION_DIFFERS)
LAYERS = ("dense", "loop", "encoder.blocks.11.attention.query_projection", "層" * 30)

amounts = st.integers(-(2**80), 2**80)
counts = st.integers(0, 2**80)
widths = st.integers(40, 120)


def whole(amount: int, sign: str = "") -> str:
    """The amount with a comma before every third digit from the right."""
    digits = re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", str(abs(amount)))
    return ("-" if amount < 0 else sign if amount else "") + digits


def plus(amount: int) -> str:
    return whole(amount, "+")


def printed(result: Answer, width: int, statement: Statement | None = None) -> str:
    out = io.StringIO()
    terminal.print_run(result, Console(file=out, width=width), statement)
    return out.getvalue()


def numbers(text: str) -> list[str]:
    return re.findall(r"(?<!\S)[(]?([+-]?\d[\d,]*)(?![\d.])", text)


def missing(text: str, amounts: list[str]) -> list[str]:
    """The amounts that the text shows less often than they are listed."""
    shown = numbers(text)
    return sorted({amount for amount in amounts if shown.count(amount) < amounts.count(amount)})


def too_wide(text: str, width: int) -> list[str]:
    return [line for line in text.splitlines() if cell_len(line) > width]


@st.composite
def statements(draw: st.DrawFn, from_: str = samples.FROZEN, to: str = samples.TF) -> Statement:
    """A statement that adds up, of any causes in any layers, with a residual or without."""
    places = draw(st.lists(st.tuples(st.sampled_from(CAUSES), st.sampled_from(LAYERS)), unique=True, max_size=4))
    lines = tuple(samples.line(cause, layer, from_, draw(amounts.filter(bool))) for cause, layer in places)
    rest = tuple(
        Residual("loop", x, "the rule does not hold") for x in draw(st.lists(amounts.filter(bool), max_size=1))
    )
    residual = sum(x.amount for x in rest)
    start = draw(amounts)
    end = start + sum(line.amount for line in lines) + residual
    state = State.UNEXPLAINED if residual else State.EXPLAINED
    return Statement(from_, to, state, "", start, end, lines, residual, rest)


def in_the_statement(statement: Statement) -> list[str]:
    """Every amount of a statement as text, as often as it stands there."""
    assert statement.from_total is not None
    assert statement.to_total is not None
    parts = [plus(line.amount) for line in statement.adjustments]
    parts += [plus(rest.amount) for rest in statement.residuals]
    sums = [plus(amount) for amount in statement.by_cause().values()]
    return [whole(statement.from_total), *sums, *parts, plus(statement.residual or 0), whole(statement.to_total)]


def section(text: str, title: str, end: str = "\n\n") -> str:
    """The text from a section's title, without it, to the end of the section."""
    start = text.index(title) + len(title)
    return text[start : text.index(end, start)]


@settings(deadline=None, max_examples=8)
@given(statements(), widths)
def test_a_statement_shows_every_amount_whole_at_any_width(statement: Statement, width: int) -> None:
    text = printed(replace(samples.clean(), statements=(statement,)), width, statement)
    body = section(text, f"From {statement.from_} to {statement.to}")
    assert missing(body, in_the_statement(statement)) == []
    assert too_wide(text, width) == []


@settings(deadline=None, max_examples=8)
@given(
    st.lists(st.tuples(counts, counts, amounts.filter(bool), amounts.filter(bool)), min_size=1, max_size=3),
    st.booleans(),
    widths,
)
def test_the_layers_show_every_amount_whole_at_any_width(
    values: list[tuple[int, int, int, int]], differ: bool, width: int
) -> None:
    rows, shown = [], []
    for layer, (work, counted, cause, rest) in zip(LAYERS, values, strict=False):
        works: Mapping[str, int] = {"tf": work, "torch": work + 1 if differ else work}
        causes = {samples.FROZEN: {Cause.OUTSIDE_CONVENTION: cause}}
        rows.append(LayerRow(layer, works, {samples.FROZEN: counted}, causes, {samples.FROZEN: rest}))
        shown += [whole(amount) for amount in sorted(set(works.values()))] + [whole(counted), plus(cause), plus(rest)]
    result = samples.clean()
    result = replace(
        result, layers=tuple(rows), ledgers=tuple(x for x in result.ledgers if x.counter == samples.FROZEN)
    )
    text = printed(result, width)
    body = section(text, "Layer by layer:", f"\n\n{samples.FROZEN}: ")
    assert missing(body, shown) == []
    assert too_wide(text, width) == []


def counted(result: Answer, total: int, unit: str) -> Answer:
    """The run with another total of thop."""
    normalised = total * (2 if unit == MAC else 1)
    ledgers = [
        replace(x, unit=unit, total=total, normalised_total=normalised) if x.counter == "thop" else x
        for x in result.ledgers
    ]
    return replace(
        result, ledgers=tuple(ledgers), statements=tuple(s for s in result.statements if "thop" not in s.from_)
    )


@settings(deadline=None, max_examples=8)
@given(counts, st.sampled_from((MAC, FLOP)), counts, widths)
def test_the_totals_show_every_amount_whole_at_any_width(total: int, unit: str, work: int, width: int) -> None:
    result = counted(samples.clean(), total, unit)
    traces = tuple(replace(trace, totals={"matmul": work}) for trace in result.traces)
    text = printed(replace(result, traces=traces), width)
    table = section("\n" + text, "\n\n", "\n\n")
    normalised = total * (2 if unit == MAC else 1)
    assert missing(table, [whole(work), whole(work), whole(normalised)]) == []
    whole_or_absent = {whole(x) for x in (total, work, normalised)}
    small = {whole(x.total) for x in result.ledgers if x.total is not None}
    normal = {whole(x.normalised_total) for x in result.ledgers if x.normalised_total is not None}
    assert set(re.findall(r"\d[\d,]{3,}\d", table)) <= whole_or_absent | small | normal
    assert (whole(total) in table.replace(whole(normalised), "")) or "as reported" not in table or total == normalised
    assert too_wide(text, width) == []


@settings(deadline=None, max_examples=6)
@given(st.integers(3, 24), widths)
def test_the_phases_show_every_phase_and_its_ratio_at_any_width(power: int, width: int) -> None:
    """Each phase of the second layer is a power of ten. Both gradients do the forward pass's work again: its ratio is 2."""
    result = samples.trained()
    (ran,) = result.traces
    work = Work(mac=10**power // 2)
    rows = [replace(row, work=work) for row in ran.rows if row.layer == "second"]
    total = {name: convention.flops(work * len(rows)) for name, convention in BUILT_IN.items()}
    text = printed(replace(result, traces=(replace(ran, rows=tuple(rows), totals=total),)), width)
    body = section(text, "Phase by phase (torch)")
    shown = f"{('1.00', '10.0', '100')[power % 3]} {'kMGTPEZY'[power // 3 - 1]}"
    assert len(re.findall(rf"(?<!\S){shown}(?!\S)", body)) == 2 * len(rows)
    assert len(re.findall(r"(?<!\S)2 *$", body, re.M)) == 2
    assert too_wide(text, width) == []


@pytest.mark.parametrize("width", [1, 20, 39])
def test_a_narrower_terminal_gets_what_40_columns_get(width: int) -> None:
    assert printed(samples.full(), width) == printed(samples.full(), 40)
