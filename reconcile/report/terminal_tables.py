"""The terminal's tables: the totals, a statement, a trace by phase and the layers. Each fits the width that it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from ..core.causes import State
from ..core.results import LayerRow, RunResult, Statement
from ..core.text import clean, number, si, signed
from ..engine.breakdown import RESIDUAL, blocks, to_the_work
from ..engine.phases import PhaseRow, PhaseTable
from ..engine.phases import phases as by_phase
from ..verdict.verdict import counters_of
from . import alike, view
from .columns import GAP, Cell, Column, Line, counter_lines, laid_out, stacked

T = TypeVar("T")
LABEL = 44
NARROW, WIDE = 72, 100
LAYERS = 40  # lines shown without --verbose; the files hold every layer
STYLE = {
    State.EQUAL: "green",
    State.EXPLAINED: "cyan",
    State.UNEXPLAINED: "bold red",
    State.NOT_COMPARABLE: "yellow",
    State.FAILED: "bold red",
    State.SKIPPED: "yellow",
}


@dataclass(frozen=True, slots=True)
class StatementLine:
    """A line of a statement: an amount of its own, or with ``part`` a layer's share of the cause above it."""

    label: Text
    amount: Text
    part: bool = False


@dataclass(frozen=True, slots=True)
class LayerLine:
    """A line of the table of layers: a value, an amount to add to it, and the cause or a note. With ``noted``, the value is
    that of the note."""

    label: Text
    value: Text = field(default_factory=Text)
    amount: Text = field(default_factory=Text)
    note: Text = field(default_factory=Text)
    indent: int = 0
    noted: bool = False


def totals(result: RunResult, width: int = 80) -> RenderableType:
    """Every counter's total as reported and normalised, and its distance from the work that ran.

    A wide terminal shows the normalised totals in SI units as well; a narrow one leaves out the reported totals. If the
    numbers are too long for columns, each has a line of its own, and no total is left out.
    """
    titles = ("counter", "as reported", "normalised", "", "", "")
    aligned = ("whole", "right", "right", "right", "right", "left")
    rows = list(_totals(result))
    for left_out in ({1, 3},) if width < NARROW else ({3},) if width < WIDE else (set[int](), {3}):
        kept = [index for index in range(len(titles)) if index not in left_out]
        columns = [Column(titles[index], aligned[index]) for index in kept]
        cells = [[row[index] for index in kept] for row in rows]
        table = laid_out(columns, cells, width, 1 if width < WIDE else GAP)
        if table is not None:
            return table
    lines = [
        line
        for name, reported, total, _, off, state in rows
        for line in counter_lines(name, reported, total, off, state)
    ]
    return stacked(lines, width)


def _totals(result: RunResult) -> Iterator[tuple[str, str, str, str, str, Text]]:
    for trace in result.traces:
        total = trace.totals.get(result.convention.name)
        shown = ("unknown", "") if total is None else (number(total), si(total))
        style = "dim" if trace.complete else STYLE[trace.state]
        yield trace.name, "", *shown, "", Text(view.trace_label(trace), style=style)
        for phase, flops in by_phase(trace, result.convention).items():
            yield f"  {clean(phase)}", "", number(flops), si(flops), "", Text("of it", style="dim")
    for counter in counters_of(result):
        ledger, total = counter.ledger, counter.ledger.normalised_total
        yield (
            ledger.counter,
            "" if ledger.total is None else f"{number(ledger.total)} {ledger.unit:<4}",
            *(("", "") if total is None else (number(total), si(total))),
            view.distance(counter),
            Text(counter.state.value.replace("_", " "), style=STYLE[counter.state]),
        )


def more(rest: Sequence[object]) -> Text:
    """What stands for the lines that are not shown."""
    return Text(f"{number(len(rest))} more line{'s' * (len(rest) > 1)}, see the files or --verbose", style="dim")


def cut(lines: Sequence[T], limit: int | None) -> tuple[Sequence[T], Sequence[T]]:
    """The lines that are shown and the rest."""
    return (lines, ()) if limit is None else (lines[:limit], lines[limit:])


def statement_table(
    statement: Statement, layers: Sequence[str] = (), limit: int | None = LAYERS, width: int = 80
) -> RenderableType:
    """A reconciliation statement: the opening total, each cause with its layers, the residual, the other total.

    Layers that are alike share a line, and beyond ``limit`` lines the rest of a cause is one, so the sum stays right. With
    None every layer has its own.
    """
    if statement.from_total is None or statement.to_total is None or statement.residual is None:
        return Text(
            f"{statement.state.value.replace('_', ' ')}: {clean(statement.reason)}", style=STYLE[statement.state]
        )
    opening = StatementLine(Text(statement.from_, style="bold"), Text(number(statement.from_total), style="bold"))
    closing = StatementLine(Text(statement.to, style="bold"), Text(number(statement.to_total), style="bold"))
    lines = [opening, *_statement_lines(statement, layers, limit)]
    columns = (Column("", "left", LABEL), Column("of which"), Column("FLOP"))
    cells: list[tuple[Cell, Cell, Cell]] = [_statement_cells(line) for line in lines]
    cells += [("", "", Rule(style="dim")), _statement_cells(closing)]
    table = laid_out(columns, cells, width)
    if table is not None:
        return table
    longest = max(len(line.amount.plain) for line in (*lines, closing))
    return Group(
        stacked(map(_statement_stacked, lines), width, "FLOP"),
        Padding(Rule(style="dim"), (0, 0, 0, max(width - longest, 0))),
        stacked([_statement_stacked(closing)], width),
    )


def _statement_lines(statement: Statement, layers: Sequence[str], limit: int | None) -> Iterator[StatementLine]:
    for block in blocks(statement, layers):
        style = STYLE[State.UNEXPLAINED] if block.cause == RESIDUAL else ""
        yield StatementLine(Text(block.cause, style=style), Text(signed(block.amount), style=style))
        parts, rest = cut(block.parts if limit is None else alike.parts(block.parts), limit)
        for part in parts:
            where = Text(clean(part.layer) or "(no layer)")
            where.append(": " + part.reason if part.reason else "  " + clean(", ".join(part.ops)), style="dim")
            yield StatementLine(where, Text(signed(part.amount), style="dim"), part=True)
        if rest:
            yield StatementLine(more(rest), Text(signed(sum(part.amount for part in rest)), style="dim"), part=True)
    if not statement.residuals:
        yield StatementLine(Text(RESIDUAL), Text(signed(statement.residual or 0)))


def _statement_cells(line: StatementLine) -> tuple[Cell, Cell, Cell]:
    return (Padding.indent(line.label, 2), line.amount, "") if line.part else (line.label, "", line.amount)


def _statement_stacked(line: StatementLine) -> Line:
    return (
        Line(Text.assemble(("of which ", "dim"), line.label), line.amount, 2)
        if line.part
        else Line(line.label, line.amount)
    )


SHORT = {"input-gradient": "input grad", "weight-gradient": "weight grad", "recomputation": "recomputed"}


def phase_view(table: PhaseTable, limit: int | None = LAYERS, width: int = 80) -> RenderableType:
    """A trace by layer and phase, in SI units; the files have every digit, and also the phases whose total is 0."""
    phases = [phase for phase in table.phases if table.total.flops[phase] or not table.total.known]
    titles = [*(SHORT.get(phase, phase) for phase in phases), "ratio"]

    def cells(name: Text, row: PhaseRow, style: str = "") -> list[Text]:
        amounts = [view.phase_cell(row, phase, lambda n: si(n, "").strip()) for phase in phases]
        return [name, *(Text(cell, style=style) for cell in [*amounts, view.phase_ratio(row)])]

    shown_rows, rest = cut(table.rows, limit)
    rows = [cells(Text(clean(row.layer) or "(no layer)"), row) for row in shown_rows]
    if rest:
        rows.append([more(rest), *(Text() for _ in titles)])
    rows.append(cells(Text("total", style="bold"), table.total, "bold"))
    shown = laid_out([Column("layer", "left"), *map(Column, titles)], rows, width)
    if shown is not None:
        return shown
    lines = []
    for name, *amounts in rows:
        lines.append(Line(name))
        lines += [Line(Text(title), cell, 2) for title, cell in zip(titles, amounts, strict=True) if cell.plain]
    return stacked(lines, width)


def layer_table(result: RunResult, limit: int | None = LAYERS, width: int = 80) -> RenderableType:
    """Per layer the work that ran, and per counter its value and the causes that separate it from that work; layers that are
    alike share a row, unless ``limit`` is None."""
    homes = {x.counter: x.framework for x in result.ledgers if x.normalised_total is not None}
    holes = {(trace.framework, u.layer) for trace, u in view.unknown(result)}
    lines: list[LayerLine] = []
    every = [
        replace(row, work={f: work for f, work in row.work.items() if (f, row.layer) not in holes})
        for row in result.layers
    ]
    rows, rest = cut(every if limit is None else alike.rows(every), limit)
    for row in rows:
        lines += _layer(row, homes)
    if rest:
        lines.append(LayerLine(more(rest)))
    columns = (
        Column("layer, counter", "left", max((len(counter) + 2 for counter in homes), default=0)),
        Column("FLOP"),
        Column("to the work"),
        Column("cause", "left"),
    )
    cells = [(Padding.indent(x.label, x.indent), x.value, x.amount, x.note) for x in lines]
    return laid_out(columns, cells, width) or stacked((y for x in lines for y in _layer_stacked(x)), width)


def _layer_stacked(line: LayerLine) -> Iterator[Line]:
    if line.label.plain:
        yield Line(line.label, Text() if line.noted else line.value, line.indent)
    if line.note.plain:
        amount = line.value if line.noted else line.amount
        yield Line(line.note, amount, line.indent + 2)


def _layer(row: LayerRow, homes: dict[str, str]) -> Iterator[LayerLine]:
    exact: list[str] = []
    counters: list[LayerLine] = []
    for counter, framework in homes.items():
        value = row.counters.get(counter, 0)
        amounts = to_the_work(row, counter).items()
        causes = [(cause, amount) for cause, amount in amounts if framework in row.work or cause == RESIDUAL]
        if not causes:
            if row.work.get(framework) == value:
                exact.append(counter)
            else:
                counters.append(LayerLine(Text(counter), Text(number(value)), note=Text("not compared"), indent=2))
        for index, (cause, amount) in enumerate(causes):
            style = STYLE[State.UNEXPLAINED] if cause == RESIDUAL else ""
            label, shown = ("", "") if index else (counter, number(value))
            to_add, why = Text(signed(amount), style=style), Text(cause, style=style)
            counters.append(LayerLine(Text(label), Text(shown), to_add, why, indent=2))
    name = Text(clean(row.layer) or "(no layer)", style="bold")
    note = Text("= " + ", ".join(exact) if exact else "", style="green")
    if len(set(row.work.values())) > 1:
        for framework, work in row.work.items():
            yield LayerLine(name, Text(number(work), style="bold"), note=Text(f"work in {framework}"), noted=True)
            name = Text()
        if exact:
            yield LayerLine(name, note=note)
    else:
        known = next((number(w) for w in row.work.values()), "unknown")
        yield LayerLine(name, Text(known, style="bold"), note=note)
    yield from counters
