"""A page as blocks: a product makes one :class:`Document`, and a renderer per format (markdown, html, terminal) writes it.

Text is data: each renderer escapes it, so that names and sentences show exactly as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...core.results import Statement as BridgeStatement


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line in a style of its own.

    Attributes:
        text: The words.
        style: ``strong``, ``emphasis`` or ``code``; the value of a State, for its colour; '' for plain words.
        link: The address that the words lead to; '' for none.
    """

    text: str
    style: str = ""
    link: str = ""


Inline = str | Span | tuple[str | Span, ...]
"""Words of a line. A newline in a text is a line break."""


def strong(text: str) -> Span:
    """The words as a span in bold."""
    return Span(text, "strong")


def mark_code(text: str) -> Inline:
    """A text whose words between backticks are code, and nothing else in it is markup."""
    pieces = re.split(r"`([^`]+)`", text)
    return tuple(Span(piece, "code") if i % 2 else piece for i, piece in enumerate(pieces) if piece)


_MARK = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)]+)\)")


def mark_up(text: str) -> tuple[str | Span, ...]:
    """Spans of a sentence of our own with code in backticks, ``**strong**``, ``*emphasis*`` and ``[links](address)``."""
    made: list[str | Span] = []
    end = 0
    for found in _MARK.finditer(text):
        code, bold, italic, words, address = found.groups()
        style = "code" if code else "strong" if bold else "emphasis" if italic else ""
        made += [text[end : found.start()], Span(code or bold or italic or words, style, address or "")]
        end = found.end()
    return tuple(part for part in (*made, text[end:]) if part)


def spans_of(inline: Inline) -> tuple[Span, ...]:
    """The words of a line as spans, whichever form they have."""
    parts = inline if isinstance(inline, tuple) else (inline,)
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; the document's title has level 1."""

    text: Inline
    level: int = 2


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph. ``style`` is ``dim`` for a note, ``bad`` for a problem, ``quote`` for a quotation; '' otherwise."""

    text: Inline
    style: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list, an item a line; ``style`` as that of :class:`Text`."""

    items: tuple[Inline, ...]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its heading; '' for none.
        align: ``left``; ``right``; ``whole``: on the left, and a terminal does not break its lines; or ``group``, for a first
            column: a terminal shows a name that several rows have in a line above them.
        room: ``much`` or ``some`` if a terminal leaves the column out where the table is too wide, ``much`` before ``some``;
            ``page`` if no terminal shows it; '' otherwise.
        wide: The least characters of the column on a terminal that has the room.
    """

    title: Inline
    align: str = "left"
    room: str = ""
    wide: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A table: as many cells in each row as there are columns. The first column has the names."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Inline, ...], ...]


def tabulate(titles: str, rows: Iterable[tuple[Inline, ...]]) -> Table:
    """A table of rows below titles with a ``|`` between two; that of a column of numbers ends with ``>``: ``layer|FLOP>``."""
    columns = (
        Column(title.removesuffix(">"), "right" if title.endswith(">") else "left") for title in titles.split("|")
    )
    return Table(tuple(columns), tuple(rows))


@dataclass(frozen=True, slots=True)
class Statement:
    """A reconciliation statement: the opening total, each cause with its layers, the residual, the other total.

    Attributes:
        statement: Its amounts.
        layers: The model's layers in their order.
        limit: Lines of a cause on a terminal; None for all.
        totals: A sentence on where its two totals come from, which a terminal leaves out; '' for none.
        most: Lines of a cause on a page; None for all.
    """

    statement: BridgeStatement
    layers: tuple[str, ...] = ()
    limit: int | None = 12
    totals: str = ""
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing for pages that can show one.

    Attributes:
        title: Its heading.
        text: What it shows, for those who do not see it.
        svg: The drawing, for an HTML page.
        file: A file with the drawing beside a Markdown page; '' if there is none, and that page leaves the picture out.
    """

    title: str
    text: str
    svg: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that a reader opens; a terminal leaves them out."""

    title: Inline
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy, or as a program wrote them. ``language`` is ``sh`` for a command, ``text`` for neither."""

    text: str
    language: str = "text"


Block = Heading | Text | Items | Table | Statement | Picture | Fold | Code


@dataclass(frozen=True, slots=True)
class Document:
    """A page.

    Attributes:
        title: What the page is about.
        summary: The answer in a sentence: below the title of a page, the last line on a terminal. '' for none.
        blocks: What the page says, in order.
        good: Whether the summary is good news; it has the exit code 0.
        problems: What a terminal shows above the summary, even where it is to be quiet.
        command: The command that writes the page again; '' for none.
        comment: A sentence for those who edit the file; pages do not show it.
    """

    title: Inline
    summary: str
    blocks: tuple[Block, ...]
    good: bool = True
    problems: tuple[str, ...] = ()
    command: str = ""
    comment: str = ""


def section(title: Inline, *blocks: Block | None) -> Iterable[Block]:
    """A heading and what is below it; nothing if all of it is None or empty."""
    full = [block for block in blocks if block is not None and not (isinstance(block, Items) and not block.items)
            and not (isinstance(block, Table) and not block.rows)]  # fmt: skip
    return (Heading(title), *full) if full else ()
