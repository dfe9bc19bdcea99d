"""Terminal output of ``reconcile run --ranks`` and ``reconcile ranks``: each fold, the sum, one device, and the traffic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...core.causes import State
from ...core.text import clean, number, si
from ...report import view
from ...report.terminal.columns import Column, Line, laid_out, stack_lines, widen
from ...report.terminal.tables import STYLE, statement_table
from . import words
from .files import Together
from .ranked import Ranked

BAR = 16
"""Characters of the longest bar."""


def show(
    result: Ranked, console: Console, files: Sequence[Path] = (), *, quiet: bool = False, verbose: bool = False
) -> None:
    """Print the ranks. ``quiet`` keeps the last line and the problems; ``verbose`` opens every line of a statement."""
    widen(console)
    parts: list[RenderableType] = []
    if not quiet:
        parts += [Text(clean(words.headline(result)), style="bold"), Text(), _ranks(result, console.width), Text()]
        statement = result.statement
        if statement is not None:
            title = Text(f"From the {statement.from_} to {statement.to}", style="bold")
            parts += [title, statement_table(statement, limit=None if verbose else 12, width=console.width), Text()]
        parts += [Text(clean(line)) for line in (*words.counters(result), *words.balance(result))]
        if passed := _traffic(result, console.width):
            parts += [Text(), Text("What a rank passes to others", style="bold"), passed]
        parts += [Text(), *(Text(clean(note), style="dim") for note in words.notes(result))]
    for answer in result.answers:
        parts += [Text(clean(line), style=STYLE[State.UNEXPLAINED]) for line in view.unknown_sentences(answer)]
    parts.append(Text(clean(words.summary(result)), style="bold green" if result.exit_code == 0 else "bold red"))
    if files and not quiet:
        parts.append(Text("wrote " + ", ".join(clean(str(file)) for file in files), style="dim"))
    console.print(Group(*parts), highlight=False, soft_wrap=False)


def _ranks(result: Ranked, width: int) -> RenderableType:
    """A row per fold: FLOPs of one rank, how many there are, and a bar."""
    name = result.convention.name
    totals = [fold.trace.totals.get(name) for fold in result.folds]
    most = max((total for total in totals if total), default=0)
    rows = [
        [words.ranks(fold.ranks), *_amount(total), _bar(total, most)]
        for fold, total in zip(result.folds, totals, strict=True)
    ]
    if result.whole:
        rows.append([f"sum of {number(result.world.size)} ranks", *_amount(result.totals.get(name)), ""])
    if result.one is not None:
        rows.append(["one device", *_amount(result.one.traces[0].totals.get(name)), ""])
    return _table(rows, width)


def _table(rows: list[list[str]], width: int) -> RenderableType:
    columns = [Column("ranks", "whole"), Column("FLOP of each"), Column(""), Column("", "whole")]
    table = laid_out(columns, rows, width)
    return table or stack_lines([Line(Text(row[0]), Text(row[1])) for row in rows], width, "FLOP of each")


def _amount(total: int | None) -> tuple[str, str]:
    return ("unknown", "") if total is None else (number(total), si(total))


def _bar(total: int | None, most: int) -> str:
    return "█" * round(BAR * total / most) if total and most else ""


def _traffic(result: Ranked, width: int) -> RenderableType | None:
    rows = [list(row) for row in words.traffic(result)]
    columns = [Column(title, "whole" if index < 3 else "right") for index, title in enumerate(words.TRAFFIC)]
    if not rows:
        return None
    return laid_out(columns, rows, width) or Group(*(Text(" ".join(filter(None, row))) for row in rows))


def together(found: Together, console: Console, kept: Sequence[Path] = (), *, quiet: bool = False) -> None:
    """Print the reports of real processes: a row for ranks with equal numbers, and their sum."""
    widen(console)
    name = found.convention
    totals = [found.totals(ranks[0]).get(name) for ranks in found.folds]
    most = max((total for total in totals if total), default=0)
    rows = [
        [words.ranks(ranks), *_amount(total), _bar(total, most)]
        for ranks, total in zip(found.folds, totals, strict=True)
    ]
    if name in found.sum:
        rows.append([f"sum of {number(found.world)} ranks", *_amount(found.sum[name]), ""])
    parts: list[RenderableType] = []
    if not quiet:
        title = f"{found.stem}, {number(found.world)} ranks, convention {name}"
        parts += [Text(clean(title), style="bold"), Text(), _table(rows, console.width), Text()]
    parts += [Text(clean(line)) for line in words.describe_counters(found)]
    style = "bold green" if found.exit_code == 0 else "bold red"
    parts.append(Text(clean(words.sum_of(found)), style=style))
    if kept and not quiet:
        parts.append(Text("wrote " + ", ".join(clean(str(file)) for file in kept), style="dim"))
    console.print(Group(*parts), highlight=False, soft_wrap=False)
