"""Renders a :class:`Document` as Markdown, and makes the rows of a statement, which the HTML page shows as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ...core.escaping import escape_line, escape_lines, guard_start, markdown
from ...core.number_format import format_signed, number
from ...core.results import Statement as BridgeStatement
from ...engine.breakdown import blocks as blocks_of
from .. import markdown_tables, view
from . import (
    Block,
    Code,
    Column,
    Document,
    Fold,
    Heading,
    Inline,
    Items,
    Picture,
    Statement,
    Table,
    Text,
    spans_of,
    strong,
)

MARKS = {"strong": "**", "emphasis": "*"}
STATEMENT = (Column("line"), Column("layer"), Column("op"), Column("of which", "right"), Column("FLOP", "right"))


def to_markdown(document: Document) -> str:
    """The page as Markdown, with one newline at its end."""
    parts = [f"# {render_inline(document.title)}"]
    parts += [f"<!-- {document.comment} -->"] if document.comment else []
    parts += [_render_line(document.summary)] if document.summary else []
    parts += render_blocks(document.blocks)
    parts += [_render_code(document.command)] if document.command else []
    return "\n\n".join(parts) + "\n"


def render_inline(inline: Inline) -> str:
    """Words of a line as Markdown; a line break is ``<br>``."""
    return "".join(map(_render_span, spans_of(inline)))


def _render_line(inline: Inline) -> str:
    """As :func:`render_inline`, where a line begins: what would begin a heading or a list there does not."""
    line = render_inline(inline)
    return guard_start(line) if spans_of(inline)[:1] and not spans_of(inline)[0].style else line


def fence(text: str, language: str) -> str:
    """Code between fences that are longer than any in it."""
    mark = "`" * max(3, _longest_ticks(text) + 1)
    return f"{mark}{language}\n{escape_lines(text)}\n{mark}"


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _render_code(text: str) -> str:
    """Code in a line, between more backticks than stand together in it."""
    mark = "`" * (_longest_ticks(text) + 1)
    edge = " " if "`" in (text[:1], text[-1:]) else ""
    return f"{mark}{edge}{escape_line(text)}{edge}{mark}"


def _render_span(span: Inline) -> str:
    (span,) = spans_of(span)
    mark = MARKS.get(span.style, "")
    text = mark + "<br>".join(map(markdown, span.text.split("\n"))) + mark
    text = _render_code(span.text) if span.style == "code" else text
    return f"[{text}]({span.link})" if span.link else text


def render_blocks(blocks: Iterable[Block]) -> Iterator[str]:
    """The text of each block that Markdown shows."""
    for block in blocks:
        if isinstance(block, Heading):
            yield f"{'#' * block.level} {render_inline(block.text)}"
        elif isinstance(block, Text):
            yield ("> " if block.style == "quote" else "") + _render_line(block.text)
        elif isinstance(block, Items):
            if block.items:
                yield "\n".join(f"- {_render_line(item)}" for item in block.items)
        elif isinstance(block, Table):
            yield _render_table(block)
        elif isinstance(block, Statement):
            yield render_statement(block, most=block.most)
        elif isinstance(block, Picture):
            if block.file:
                yield f"![{markdown(block.text)}]({block.file})"
        elif isinstance(block, Code):
            yield fence(block.text, block.language)
        elif isinstance(block, Fold):
            inside = "\n\n".join(render_blocks(block.blocks))
            yield f"<details><summary>{render_inline(block.title)}</summary>\n\n{inside}\n\n</details>"


def _render_table(table: Table) -> str:
    return _lay_table(table.columns, table.rows, "  ")


def _lay_table(columns: Sequence[Column], rows: Iterable[Sequence[Inline]], empty: str) -> str:
    head = tuple(column.title for column in columns)
    cells = [[render_inline(cell) for cell in row] for row in (head, *rows)]
    lines = [f"|{'|'.join(f' {cell} ' if cell else empty for cell in row)}|" for row in cells]
    lines.insert(1, "|" + "".join("--:|" if column.align == "right" else ":--|" for column in columns))
    return "\n".join(lines)


def render_statement(block: Statement, brief: bool = False, most: int | None = None) -> str:
    """The statement as a table with a sentence on its totals, or why it has no amounts; see :func:`statement_rows`."""
    statement = block.statement
    if not statement.is_closed:
        return markdown(why_open(statement))
    totals = f"{markdown(block.totals)}\n\n" if block.totals else ""
    return totals + _lay_table(STATEMENT, statement_rows(statement, block.layers, brief, most), " ")


def why_open(statement: BridgeStatement) -> str:
    """Why a statement has no amounts: ``not comparable: it sees the forward pass only``."""
    return f"{view.state_word(statement.state.value)}: {statement.reason or 'no reason was given'}"


def statement_rows(
    statement: BridgeStatement, layers: Sequence[str] = (), brief: bool = False, most: int | None = None
) -> Iterator[tuple[Inline, ...]]:
    """The rows of a closed statement: cause, layer, op, each layer's share, the cause's sum. Layers that are alike share a row;
    with ``brief`` those of a block as well. Of a cause, ``most`` rows are shown, and one has the sum of the others."""
    yield (strong(statement.from_), "", "", "", strong(number(statement.from_total or 0)))
    for block in blocks_of(statement, layers):
        shares = markdown_tables.shares(block.parts, brief, most)
        alone = len(shares) == 1
        if not alone:
            yield (block.cause, "", "", "", format_signed(block.amount))
        for share in shares:
            part = "" if alone and share.count == 1 else times(share.amount, share.count)
            name, what = escape_line(share.name) or "(no layer)", escape_line(share.reason or ", ".join(share.ops))
            yield (block.cause if alone else "", name, what, part,
                   format_signed(block.amount) if alone else "")  # fmt: skip
    if not statement.residuals:
        yield ("residual", "", "", "", format_signed(statement.residual or 0))
    yield (strong(statement.to), "", "", "", strong(number(statement.to_total or 0)))


def times(amount: int, count: int) -> str:
    """An amount that ``count`` layers have each: ``+30 (10 × +3)``; ``+3`` where there is one."""
    whole = format_signed(count * amount)
    return whole if count == 1 else f"{whole} ({number(count)} × {format_signed(amount)})"
