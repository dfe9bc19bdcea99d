"""The terminal output of ``reconcile matrix``: a table of totals, the statements between neighbours, the paths of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from ..core.causes import State
from ..core.results import Statement
from ..core.text import clean, number
from ..report import view
from ..report.terminal.columns import counter_lines, stack_lines, widen
from ..report.terminal.tables import STYLE, statement_table
from . import report as matrix
from .run import MatrixResult

HEADER = ("environment, counter", "as reported", "normalised", "off by", "state")
LAYERS = 6  # of one cause, without --verbose; the files hold all of them
GAP = "  "
REPORTED = 1


def show(
    result: MatrixResult, console: Console, files: Sequence[Path] = (), *, quiet: bool = False, verbose: bool = False
) -> None:
    """Print a matrix. ``quiet`` keeps the summary and the problems; ``verbose`` adds each counter's statement."""
    layers = matrix.layers(result)
    limit = None if verbose else LAYERS
    widen(console)

    def put(text: RenderableType = "", style: str = "") -> None:
        console.print(Text(clean(text), style=style) if isinstance(text, str) else text, highlight=False)

    def put_statement(s: Statement) -> None:
        if s.state is State.EQUAL and s.to_total is not None:
            put(Text.assemble((f"{s.from_} → {s.to}", "bold"), f": equal, {number(s.to_total)} FLOP, residual 0"))
            return
        put(f"{s.from_} → {s.to}", "bold")
        console.print(statement_table(s, layers, limit, console.width), highlight=False)
        put()

    if not quiet:
        put(f"{result.model}, convention {result.convention.name}: totals by environment", "bold")
        put()
        for line in totals(result, console.width):
            put(line)
        put()
        for sentence in matrix.work(result):
            put(f"work that ran: {sentence}")
        if result.neighbours:
            put()
            put("Between neighbours: from each counter to the next of its family", "bold underline")
            put()
        for s in result.neighbours:
            put_statement(s)
        for s in [s for cell in result.cells for s in matrix.to_the_work(cell)] if verbose else ():
            put_statement(s)
        put()
        for note in matrix.list_borrowed(result):
            put(f"note: {note}")
    for problem in _problems(result, quiet):
        put(problem, STYLE[State.UNEXPLAINED])
    put(matrix.summary(result), "bold green" if result.exit_code == 0 else "bold red")
    if files and not quiet:
        put("wrote " + ", ".join(str(f) for f in files), "dim")


def totals(result: MatrixResult, width: int = 80) -> list[RenderableType]:
    """The table: an environment's line with its versions, one line per counter below it, or a reason if there is no number.

    If the table is too wide, the reported totals are left out; if it still is, each number has a line of its own, and no
    total is left out.
    """
    cells = [_cells(row) for row in matrix.rows(result) if row.verdict is not None]
    widths = [max(len(row[i]) for row in (HEADER, *cells)) for i in range(len(HEADER))]
    if _across(widths) > width:
        widths[REPORTED] = 0
    columns = _across(widths) <= width
    lines: list[RenderableType] = []
    if columns:
        lines += [Text(_lay_cells(HEADER, widths), style="dim"), Text("─" * _across(widths), "dim")]
    before = None
    for row in matrix.rows(result):
        if row.cell is not before:
            lines.append(_environment(row))
            before = row.cell
        if row.verdict is None:
            lines.append(_why(row))
            continue
        *rest, state = _cells(row)
        verdict = Text(state, style=STYLE[row.state])
        if columns:
            lines.append(Text(_lay_cells((*rest, ""), widths)).append_text(verdict))
        else:
            name, reported, normalised, off = rest
            lines.append(stack_lines(counter_lines(name, reported, normalised, off, verdict), width))
        if row.reason:
            lines.append(_why(row, f"{GAP}{GAP}"))
    return lines


def _cells(row: matrix.CounterRow) -> tuple[str, ...]:
    assert row.verdict is not None
    ledger = row.verdict.ledger
    reported = "" if ledger.total is None else f"{number(ledger.total)} {ledger.unit:<4}"
    normalised = "" if ledger.normalised_total is None else number(ledger.normalised_total)
    state = view.word(row.state.value)
    return GAP + clean(ledger.counter), reported, normalised, view.distance(row.verdict), state


def _across(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (sum(map(bool, widths)) - 1)


def _lay_cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *middle, last = (
        cell.ljust(width) if i in (0, len(widths) - 1) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        if width
    )
    return GAP.join((first, *middle, last.rstrip()))


def _environment(row: matrix.CounterRow) -> Text:
    text = Text(clean(row.cell.environment.name), style="bold")
    versions = ", ".join(f"{name} {version}" for name, version in matrix.versions(row.cell).items())
    return text.append(GAP + clean(versions or row.cell.environment.title), style="not bold dim")


def _why(row: matrix.CounterRow, indent: str = GAP) -> Text:
    return Text(f"{indent}{row.state.value.replace('_', ' ')}: {clean(row.reason)}", style=STYLE[row.state])


def _problems(result: MatrixResult, quiet: bool) -> Iterator[str]:
    """The problems of each environment. Failures are in the table already, so they are repeated only if it is not shown."""
    for cell in result.cells:
        name = cell.environment.name
        if cell.result is None:
            if quiet:
                yield f"{name}: {cell.state.value}: {cell.reason}"
            continue
        yield from (f"{name}: {view.broken_sentence(*pair)}" for pair in view.broken(cell.result))
        yield from (f"{name}: {sentence}" for sentence in view.unknown_sentences(cell.result))
        yield from (f"{name}: {sentence}" for sentence in view.traces_lost(cell.result))
        if quiet:
            failed = (State.FAILED, State.SKIPPED)
            yield from (
                f"{name}: {x.counter}: {x.state.value}: {x.reason}" for x in cell.result.ledgers if x.state in failed
            )
    for s in result.neighbours:
        if s.state is State.UNEXPLAINED:
            yield f"{s.from_} → {s.to}: {number(s.residual or 0)} FLOP unexplained: {s.reason}"
