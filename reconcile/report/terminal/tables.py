"""The terminal's tables of totals, of a statement and of a trace by phase, each fitted to a width; layers.py has the layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from ...core.causes import State
from ...core.escaping import escape_line
from ...core.number_format import format_count, format_signed, number, si
from ...core.results import Statement
from ...engine.answer import Answer
from ...engine.breakdown import RESIDUAL, blocks
from ...engine.phases import PhaseRow, PhaseTable
from ...engine.phases import sum_phase_rows as summed_phases
from .. import folds, view
from ..document import Column
from .columns import Cell, Line, fit_table, lay_out_table, stack_lines

MAX_LABEL_LENGTH = 44
MAX_LAYERS_SHOWN = 12  # lines of a cause, or of a table by phase, without --verbose; the files hold every layer
MAX_OPS_SHOWN = 3  # folded lines that are named
PART = 2  # indent of a layer's share of the cause above it
STYLE_OF_STATE = {
    State.EQUAL: "green",
    State.EXPLAINED: "cyan",
    State.UNEXPLAINED: "bold red",
    State.NOT_COMPARABLE: "yellow",
    State.FAILED: "bold red",
    State.SKIPPED: "yellow",
}


TOTALS_COLUMNS = (
    Column("counter", "whole"), Column("as reported", "right", "some"), Column("normalised", "right"),
    Column("", "right", "much"), Column("off by", "right"), Column("state", "whole"),
)  # fmt: skip


def totals_table(result: Answer, width: int = 80, brief: bool = False) -> RenderableType:
    """Every counter's total as reported and normalised, and its distance from the work that ran.

    A wide terminal shows the normalised totals in SI units as well; a narrow one leaves out the reported totals. With ``brief``
    the last column is narrower.
    """
    return fit_table(TOTALS_COLUMNS, list(_list_totals(result, brief)), width)


def _list_totals(result: Answer, brief: bool) -> Iterator[list[Text]]:
    def row(
        name: str, reported: str, total: int | None, off: str, state: str, style: str, lost: str = ""
    ) -> list[Text]:
        shown = (lost, "") if total is None else (number(total), si(total))
        return [*map(Text, (name, reported, *shown, off)), Text(state, style=style)]

    for trace in result.traces:
        total = trace.totals.get(result.convention.name)
        label = "what ran" if brief and trace.complete else view.trace_label(trace)
        yield row(trace.name, "", total, "", label, "dim" if trace.complete else STYLE_OF_STATE[trace.state], "unknown")
        for phase, flops in result.by_phase(trace).items():
            yield row(f"  {escape_line(phase)}", "", flops, "", "of it", "dim")
    for counter in result.verdict.counters:
        ledger = counter.ledger
        reported = "" if ledger.total is None else f"{number(ledger.total)} {ledger.unit:<4}"
        state = view.state_word(counter.state.value)
        yield row(
            ledger.counter,
            reported,
            ledger.normalised_total,
            view.describe_distance(counter),
            state,
            STYLE_OF_STATE[counter.state],
        )


def and_more_text(rest: Sequence[object]) -> Text:
    """The line in place of those that are not shown."""
    return Text(f"{format_count(len(rest), 'more line')}, see the files or --verbose", style="dim")


def statement_table(
    statement: Statement,
    layers: Sequence[str] = (),
    limit: int | None = MAX_LAYERS_SHOWN,
    width: int = 80,
    brief: bool = False,
) -> RenderableType:
    """A reconciliation statement: the opening total, each cause with its layers, the residual, the other total.

    Layers that are alike share a line, as do the layers of a block if there are many; beyond ``limit`` lines the smallest amounts
    of a cause are one line, so the sum stays right. With None every layer has its own line. ``brief`` leaves out the ops,
    which would take a second line; the files have them.
    """
    if statement.from_total is None or statement.to_total is None or statement.residual is None:
        return Text(
            f"{statement.state.value.replace('_', ' ')}: {escape_line(statement.reason)}",
            style=STYLE_OF_STATE[statement.state],
        )
    opening = Line(Text(statement.from_, style="bold"), Text(number(statement.from_total), style="bold"))
    closing = Line(Text(statement.to, style="bold"), Text(number(statement.to_total), style="bold"))
    lines = [opening, *_statement_lines(statement, layers, limit, brief)]
    columns = (Column("", wide=MAX_LABEL_LENGTH), Column("of which", "right"), Column("FLOP", "right"))
    cells: list[tuple[Cell, Cell, Cell]] = [_statement_cells(line) for line in lines]
    cells += [("", "", Rule(style="dim")), _statement_cells(closing)]
    table = lay_out_table(columns, cells, width)
    if table is not None:
        return table
    longest = max(len(line.amount.plain) for line in (*lines, closing))
    return Group(
        stack_lines(map(_statement_stacked, lines), width, "FLOP"),
        Padding(Rule(style="dim"), (0, 0, 0, max(width - longest, 0))),
        stack_lines([_statement_stacked(closing)], width),
    )


def _statement_lines(statement: Statement, layers: Sequence[str], limit: int | None, brief: bool) -> Iterator[Line]:
    for block in blocks(statement, layers):
        style = STYLE_OF_STATE[State.UNEXPLAINED] if block.cause == RESIDUAL else ""
        every = folds.list_shares(block.parts, limit)
        shares, rest = folds.keep_largest(every, limit, lambda share: abs(share.count * share.amount))
        cause = Text(block.cause, style=style)
        beside = (
            f"  {escape_line(shares[0].name)}{_residual_reason(shares[0])}"
            if len(shares) == 1 and shares[0].count == 1
            else ""
        )
        if brief and beside and len(cause.plain + beside) <= MAX_LABEL_LENGTH:
            yield Line(cause.append(beside, style="dim"), Text(format_signed(block.amount), style=style))
            continue
        yield Line(cause, Text(format_signed(block.amount), style=style))
        for share in shares:
            where, why = Text(escape_line(share.name) or "(no layer)"), _residual_reason(share)
            if share.count > 1:
                where.append(f" ({number(share.count)} × {format_signed(share.amount)})")
            if not brief or block.cause == RESIDUAL or len(where.plain) + len(why) + 2 <= MAX_LABEL_LENGTH:
                where.append(why, style="dim")
            yield Line(where, Text(format_signed(share.count * share.amount), style="dim"), PART)
        if rest:
            left = sum(share.count * share.amount for share in rest)
            yield Line(and_more_text(rest), Text(format_signed(left), style="dim"), PART)
    if not statement.residuals:
        yield Line(Text(RESIDUAL), Text(format_signed(statement.residual or 0)))


def _residual_reason(share: folds.Share) -> str:
    """The reason of a residual, else the ops; a few of them for several layers."""
    if share.reason:
        return ": " + share.reason
    ops = list(share.ops)
    if share.count > 1:
        ops = list(dict.fromkeys(name for op in ops for name in op.split("; ")))
        ops = ops if len(ops) <= MAX_OPS_SHOWN + 1 else [*ops[:MAX_OPS_SHOWN], f"{len(ops) - MAX_OPS_SHOWN} more"]
    return "  " + escape_line(", ".join(ops))


def _statement_cells(line: Line) -> tuple[Cell, Cell, Cell]:
    return (Padding.indent(line.label, line.indent), line.amount, "") if line.indent else (line.label, "", line.amount)


def _statement_stacked(line: Line) -> Line:
    return replace(line, label=Text.assemble(("of which ", "dim"), line.label)) if line.indent else line


SHORT_PHASES = {"input-gradient": "input grad", "weight-gradient": "weight grad", "recomputation": "recomputed"}


def phase_view(table: PhaseTable, limit: int | None = MAX_LAYERS_SHOWN, width: int = 80) -> RenderableType:
    """A trace by layer and phase, in SI units; the files have every digit, and also the phases whose total is 0."""
    phases = [phase for phase in table.phases if table.total.flops[phase] or not table.total.known]
    titles = [*(SHORT_PHASES.get(phase, phase) for phase in phases), "ratio"]

    def cells(name: Text, row: PhaseRow, style: str = "") -> list[Text]:
        amounts = [view.phase_cell(row, phase, lambda n: si(n, "").strip()) for phase in phases]
        return [name, *(Text(cell, style=style) for cell in [*amounts, view.phase_ratio(row)])]

    every: Sequence[PhaseRow] = table.rows
    if limit is not None:  # layers that are alike share a row, with their sums
        every = [summed_phases(*named) for named in folds.name_lines(folds.fold_phases(table.rows), limit)]
    shown_rows, rest = folds.keep_largest(every, limit, lambda row: sum(row.flops.values()))
    rows = [cells(Text(escape_line(row.layer) or "(no layer)"), row) for row in shown_rows]
    if rest:
        rows.append([and_more_text(rest), *(Text() for _ in titles)])
    rows.append(cells(Text("total", style="bold"), table.total, "bold"))
    return fit_table([Column("layer"), *(Column(title, "right") for title in titles)], rows, width)
