"""Prints a :class:`Document` on a terminal: tables are fitted to its width, the summary is the last line."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import rich.text
from rich.console import Console, Group, RenderableType
from rich.padding import Padding

from ...core.causes import State
from ...core.text import clean, plain
from ..terminal import columns
from ..terminal.tables import STYLE, statement_table
from . import Block, Code, Document, Fold, Heading, Inline, Items, Picture, Statement, Table, Text, spans_of

STYLES = {"dim": "dim", "bad": STYLE[State.UNEXPLAINED], "strong": "bold", "emphasis": "italic"}
ALL_ROOMS = ("", "some")
STYLES |= {state.value: style for state, style in STYLE.items()}


def show(document: Document, console: Console, files: Sequence[Path] = (), *, quiet: bool = False) -> None:
    """Print a page, and the paths of the files that were written; ``quiet`` leaves the problems and the summary alone."""
    columns.widen(console)
    parts: list[RenderableType] = []
    if not quiet:
        parts += [
            render_inline(document.title, "bold"),
            rich.text.Text(),
            *render_blocks(document.blocks, console.width),
        ]
    parts += [rich.text.Text(clean(problem), style=STYLES["bad"]) for problem in document.problems]
    if document.summary:
        parts.append(rich.text.Text(clean(document.summary), style="bold green" if document.good else "bold red"))
    if files and not quiet:
        parts.append(rich.text.Text("wrote " + ", ".join(clean(str(file)) for file in files), style="dim"))
    console.print(Group(*parts), highlight=False, soft_wrap=False)


def to_text(document: Document, width: int = 80) -> str:
    """The page as a terminal of this width shows it, without colours."""
    out = io.StringIO()
    show(document, Console(file=out, width=width, color_system=None, markup=False, emoji=False))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def render_inline(inline: Inline, style: str = "") -> rich.text.Text:
    """Words of a line, without the addresses of links."""
    made = rich.text.Text(style=style)
    for span in spans_of(inline):
        made.append("\n".join(map(clean, span.text.split("\n"))), style=STYLES.get(span.style, ""))
    return made


def render_blocks(blocks: Iterable[Block], width: int) -> Iterator[RenderableType]:
    """What a terminal shows of each block; an empty line after it."""
    for block in blocks:
        if isinstance(block, Heading):
            yield render_inline(block.text, "bold")
            continue
        if isinstance(block, Text):
            yield render_inline(block.text, STYLES.get(block.style, ""))
        elif isinstance(block, Items):
            if not block.items:
                continue
            yield from (render_inline(item, STYLES.get(block.style, "")) for item in block.items)
        elif isinstance(block, Table):
            yield _render_table(block, width)
        elif isinstance(block, Statement):
            yield statement_table(block.statement, block.layers, block.limit, width)
        elif isinstance(block, Code):
            yield rich.text.Text(plain(block.text))
        elif isinstance(block, Picture | Fold):
            continue
        yield rich.text.Text()


def _render_table(table: Table, width: int) -> RenderableType:
    """In columns; where these do not fit, each row's name with the cells that it has below it."""
    grouped = bool(table.columns) and table.columns[0].align == "group"
    for rooms, gap in ((ALL_ROOMS, 2), (ALL_ROOMS, 1), (("",), 2), (("",), 1), (ALL_ROOMS, 0)):
        kept = [index for index, column in enumerate(table.columns) if column.room in rooms]
        titles = [render_inline(table.columns[index].title).plain for index in kept]
        aligned = [table.columns[index].align for index in kept]
        rows: list[list[columns.Cell]] = [[render_inline(row[index]) for index in kept] for row in table.rows]
        if grouped:
            titles, aligned, rows = [f"{titles[0]}, {titles[1]}", *titles[2:]], aligned[1:], list(_group_rows(rows))
        shown = columns.laid_out(list(map(columns.Column, titles, aligned)), rows, width, gap) if gap else None
        if shown is not None:
            return shown
    return columns.stack_lines(_stack_rows(titles[1:], rows), width)  # each number has a line: of all columns again


def _group_rows(rows: Iterable[list[columns.Cell]]) -> Iterator[list[columns.Cell]]:
    """Each name that rows begin with in a row of its own, and theirs below it."""
    last: object = None
    for group, name, *cells in rows:
        if group != last:
            last = group
            yield [group, *("" for _ in cells)]
        yield [Padding.indent(name, 2), *cells]


def _stack_rows(titles: Sequence[str], rows: Iterable[Sequence[columns.Cell]]) -> Iterator[columns.Line]:
    for name, *cells in rows:
        indent = name.left if isinstance(name, Padding) else 0
        yield columns.Line(_text_of(name), indent=indent)
        for title, cell in zip(titles, map(_text_of, cells), strict=True):
            if cell.plain:
                yield columns.Line(rich.text.Text(title), cell, indent + 2)


def _text_of(cell: columns.Cell) -> rich.text.Text:
    inside = cell.renderable if isinstance(cell, Padding) else cell
    return inside if isinstance(inside, rich.text.Text) else rich.text.Text(str(inside))
