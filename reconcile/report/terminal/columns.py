"""Table layout for a terminal's width: numbers are never wrapped; where columns do not fit, an amount has its own line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..document import Column

MIN_CONSOLE_WIDTH = 40
"""A narrower terminal is treated as one of this width."""
MIN_NAME_WIDTH = 24
"""A column of names is folded at this width or above, so that a cause's name stays whole."""
COLUMN_GAP = 2

Cell = str | Text | Padding | Rule


@dataclass(frozen=True, slots=True)
class Line:
    """A label and its amount, if there are no columns."""

    label: Text
    amount: Text = field(default_factory=Text)
    indent: int = 0


def ensure_min_width(console: Console) -> None:
    """Make a console at least as wide as the narrowest terminal that is supported."""
    if console.width < MIN_CONSOLE_WIDTH:
        console.width = MIN_CONSOLE_WIDTH


def lay_out_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int, gap: int = COLUMN_GAP
) -> Table | None:
    """The table, or None if it is too wide even with its names folded. The first column has the names. Without titles it has no
    head."""
    cells_of = list(zip(*rows, strict=True)) or [()] * len(columns)
    natural = [
        max(map(_cell_length, (*str(c.title).split("\n"), *cells))) for c, cells in zip(columns, cells_of, strict=True)
    ]
    wanted = [max(size, column.wide) for size, column in zip(natural, columns, strict=True)]
    least = [
        size
        if column.align != "left"
        else min(size, MIN_NAME_WIDTH, max(map(_longest_word, cells), default=0) if index else MIN_NAME_WIDTH)
        for index, (size, column, cells) in enumerate(zip(natural, columns, cells_of, strict=True))
    ]
    room = width - gap * (len(columns) - 1) - sum(least)
    if room < 0:
        return None
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", border_style="dim",
        padding=(0, gap - 1, 0, 0), show_header=any(column.title for column in columns),
    )  # fmt: skip
    widths = []
    for column, floor, size in zip(columns, least, wanted, strict=True):
        given = min(size, floor + room)
        room -= given - floor
        right = column.align == "right"
        table.add_column(
            str(column.title),
            justify="right" if right else "left",
            no_wrap=column.align != "left",
            overflow="fold",
            width=given,
        )
        widths.append(given if column.align == "left" else 0)
    for row in rows:
        table.add_row(*(_fold_cell(cell, width) for cell, width in zip(row, widths, strict=True)))
    return table


def _fold_cell(cell: Cell, width: int) -> Cell:
    """A cell with lines no wider than that: a name that is too long is broken after a dot, if there is one to break it at."""
    if isinstance(cell, Padding) and isinstance(cell.renderable, Text):
        return Padding.indent(_break_name(cell.renderable, width - cell.left), cell.left) if width else cell
    return _break_name(cell, width) if isinstance(cell, Text) and width else cell


def _break_name(text: Text, width: int) -> Text:
    name = text.plain.split(" ", 1)[0]
    if not name.isascii() or len(name) <= width:
        return text
    breaks: list[int] = []
    start = 0
    while len(name) - start > width:
        dot = name.rfind(".", start + width // 3, start + width)
        start = dot + 1 if dot >= 0 else start + width
        breaks.append(start)
    return Text("\n").join(text.divide(breaks))


def stack_lines(lines: Iterable[Line], width: int, title: str = "") -> Group:
    """The labels on the left and the amounts on the right; an amount that does not fit beside its label stands below it."""
    parts: list[RenderableType] = [Text(title.rjust(width), style="dim"), Rule(style="dim")] if title else []
    for line in lines:
        taken = line.indent + cell_len(line.label.plain)
        blank = width - taken - cell_len(line.amount.plain)
        beside = bool(taken) and blank >= COLUMN_GAP
        label = Text.assemble(line.label, " " * blank, line.amount) if beside else line.label
        if line.label.plain:
            parts.append(Padding.indent(label, line.indent))
        if line.amount.plain and not beside:
            parts.append(align_right(line.amount, width))
    return Group(*parts)


def align_right(amount: Text, width: int) -> Text:
    """The amount with blanks before it, so that it ends at the right edge."""
    return Text.assemble(" " * (width - cell_len(amount.plain)), amount)


def fit_table(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> RenderableType:
    """The table in columns; if they do not fit, narrower or without those that need room; if they still do not, each row's name
    with all of its other cells below it, each on a line of its own."""
    cells: Sequence[Sequence[Cell]] = rows
    if columns and columns[0].align == "group":
        columns = (Column(f"{columns[0].title}, {columns[1].title}", columns[1].align), *columns[2:])
        cells = list(_group_rows(rows))
    for rooms, gap in FITS_TO_TRY:
        kept = [index for index, column in enumerate(columns) if column.room in rooms]
        shown = lay_out_table(
            [columns[index] for index in kept], [[row[index] for index in kept] for row in cells], width, gap
        )
        if shown is not None:
            return shown
    return stack_lines(_stack_rows([str(column.title) for column in columns[1:]], cells), width)


FITS_TO_TRY = (
    (("", "some", "much"), COLUMN_GAP),
    (("", "some"), COLUMN_GAP),
    (("", "some"), 1),
    (("",), COLUMN_GAP),
    (("",), 1),
)
"""Which columns of a table are tried in turn, by their ``room``, and the blanks between two of them."""


def _group_rows(rows: Iterable[Sequence[Text]]) -> Iterator[list[Cell]]:
    """Each name that rows begin with in a row of its own, and theirs below it."""
    last: object = None
    for group, name, *cells in rows:
        if group != last:
            last = group
            yield [group, *("" for _ in cells)]
        yield [Padding.indent(name, 2), *cells]


def _stack_rows(titles: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[Line]:
    for name, *cells in rows:
        indent = name.left if isinstance(name, Padding) else 0
        inside = name.renderable if isinstance(name, Padding) else name
        yield Line(inside if isinstance(inside, Text) else Text(str(inside)), indent=indent)
        for title, cell in zip(titles, cells, strict=True):
            if isinstance(cell, Text) and cell.plain:
                yield Line(Text(title), cell, indent + 2)


def _cell_text(cell: Cell) -> tuple[str, int]:
    if isinstance(cell, Padding):
        return _cell_text(cell.renderable)[0], cell.left  # type: ignore[arg-type]
    if isinstance(cell, Rule):
        return "", 0
    return (cell.plain if isinstance(cell, Text) else cell), 0


def _cell_length(cell: Cell) -> int:
    text, indent = _cell_text(cell)
    return indent + cell_len(text)


def _longest_word(cell: Cell) -> int:
    text, indent = _cell_text(cell)
    return indent + max(map(cell_len, text.split()), default=0)
