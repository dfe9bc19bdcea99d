"""Prints a :class:`Document` on a terminal: tables are fitted to its width, the summary is the last line."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import rich.text
from rich.console import Console, Group, RenderableType

from ...core.causes import State
from ...core.escaping import escape_line, escape_lines
from ..terminal import columns
from ..terminal.tables import STYLE_OF_STATE, statement_table
from . import Block, Code, Document, Fold, Heading, Inline, Items, Picture, Statement, Table, Text, spans_of

STYLES = {"dim": "dim", "bad": STYLE_OF_STATE[State.UNEXPLAINED], "strong": "bold", "emphasis": "italic"}
STYLES |= {state.value: style for state, style in STYLE_OF_STATE.items()}


def show(document: Document, console: Console, files: Sequence[Path] = (), *, quiet: bool = False) -> None:
    """Print a page, and the paths of the files that were written; ``quiet`` leaves the problems and the summary alone."""
    columns.ensure_min_width(console)
    parts: list[RenderableType] = []
    if not quiet:
        parts += [
            render_inline(document.title, "bold"),
            rich.text.Text(),
            *render_blocks(document.blocks, console.width),
        ]
    parts += [rich.text.Text(escape_line(problem), style=STYLES["bad"]) for problem in document.problems]
    if document.summary:
        parts.append(rich.text.Text(escape_line(document.summary), style="bold green" if document.good else "bold red"))
    if files and not quiet:
        parts.append(rich.text.Text("wrote " + ", ".join(escape_line(str(file)) for file in files), style="dim"))
    console.print(Group(*parts), highlight=False, crop=False)


def show_blocks(blocks: Iterable[Block], console: Console) -> None:
    """Print blocks alone, such as what follows a page."""
    columns.ensure_min_width(console)
    console.print(Group(*render_blocks(blocks, console.width)), highlight=False, crop=False)


def to_text(document: Document, width: int = 80) -> str:
    """The page as a terminal of this width shows it, without colours."""
    out = io.StringIO()
    show(document, Console(file=out, width=width, color_system=None, markup=False, emoji=False))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def render_inline(inline: Inline, style: str = "") -> rich.text.Text:
    """Words of a line as rich text, without the addresses of links."""
    made = rich.text.Text(style=style)
    for span in spans_of(inline):
        made.append("\n".join(map(escape_line, span.text.split("\n"))), style=STYLES.get(span.style, ""))
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
            yield rich.text.Text(escape_lines(block.text), no_wrap=True, overflow="ignore")
        elif isinstance(block, Picture | Fold):
            continue
        yield rich.text.Text()


def _render_table(table: Table, width: int) -> RenderableType:
    kept = [index for index, column in enumerate(table.columns) if column.room != "page"]
    shown = [
        replace(column, title=render_inline(column.title).plain) for column in map(table.columns.__getitem__, kept)
    ]
    return columns.fit_table(shown, [[render_inline(row[index]) for index in kept] for row in table.rows], width)
