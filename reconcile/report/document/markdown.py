"""Renders a :class:`Document` as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...core.text import format_signed, markdown, number
from ...engine.breakdown import blocks as blocks_of
from . import Block, Column, Document, Fold, Heading, Inline, Items, Picture, Statement, Table, Text, spans_of, strong

MARKS = {"strong": "**", "emphasis": "*", "code": "`"}
STATEMENT = (Column("cause"), Column("layer"), Column("of which", "right"), Column("FLOP", "right"))


def to_markdown(document: Document) -> str:
    """The page as Markdown, with one newline at its end."""
    parts = [f"# {render_inline(document.title)}"]
    parts += [f"<!-- {document.comment} -->"] if document.comment else []
    parts += [render_inline(document.summary)] if document.summary else []
    parts += render_blocks(document.blocks)
    parts += [f"`{document.command}`"] if document.command else []
    return "\n\n".join(parts) + "\n"


def render_inline(inline: Inline) -> str:
    """Words of a line; a line break is ``<br>``."""
    return "".join(map(_render_span, spans_of(inline)))


def _render_span(span: Inline) -> str:
    (span,) = spans_of(span)
    text = span.text if span.style == "code" else "<br>".join(map(markdown, span.text.split("\n")))
    mark = MARKS.get(span.style, "")
    text = f"{mark}{text}{mark}"
    return f"[{text}]({span.link})" if span.link else text


def render_blocks(blocks: Iterable[Block]) -> Iterator[str]:
    """The text of each block that Markdown shows."""
    for block in blocks:
        if isinstance(block, Heading):
            yield f"{'#' * block.level} {render_inline(block.text)}"
        elif isinstance(block, Text):
            yield ("> " if block.style == "quote" else "") + render_inline(block.text)
        elif isinstance(block, Items):
            if block.items:
                yield "\n".join(f"- {render_inline(item)}" for item in block.items)
        elif isinstance(block, Table):
            yield _render_table(block)
        elif isinstance(block, Statement):
            yield _render_statement(block)
        elif isinstance(block, Picture):
            if block.file:
                yield f"![{markdown(block.text)}]({block.file})"
        elif isinstance(block, Fold):
            inside = "\n\n".join(render_blocks(block.blocks))
            yield f"<details><summary>{render_inline(block.title)}</summary>\n\n{inside}\n\n</details>"


def _render_table(table: Table) -> str:
    rows: list[tuple[Inline, ...]] = [tuple(column.title for column in table.columns), *table.rows]
    lines = [f"| {' | '.join(map(render_inline, row))} |" for row in rows]
    lines.insert(1, "|" + "".join("--:|" if column.align == "right" else ":--|" for column in table.columns))
    return "\n".join(lines)


def _render_statement(block: Statement) -> str:
    """The statement as a table, or why it has no amounts."""
    statement = block.statement
    if statement.from_total is None or statement.to_total is None or statement.residual is None:
        return f"{statement.state.value.replace('_', ' ')}: {markdown(statement.reason)}"
    return _render_table(Table(STATEMENT, tuple(statement_rows(block))))


def statement_rows(block: Statement) -> Iterator[tuple[Inline, ...]]:
    """The rows of a statement that has its amounts: cause, layer and ops, the layer's share, the cause's sum."""
    statement = block.statement
    yield (strong(statement.from_), "", "", strong(number(statement.from_total or 0)))
    for each in blocks_of(statement, block.layers):
        yield (each.cause, "", "", format_signed(each.amount))
        for part in each.parts:
            where = f"{part.layer or '(no layer)'}: {part.reason or ', '.join(part.ops)}"
            yield ("", where, format_signed(part.amount), "")
    if not statement.residuals:
        yield ("residual", "", "", format_signed(statement.residual or 0))
    yield (strong(statement.to), "", "", strong(number(statement.to_total or 0)))
