"""Renders a :class:`Document` as HTML: a page, in one file that contains everything and sends no request, or a ``<div>``.

``to_fragment`` makes the ``<div>``, with its own style, for a notebook; ``blocks_to_html`` blocks alone, for other pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import resources

import jinja2
from markupsafe import Markup, escape

from ...core.escaping import escape_line, escape_lines
from ..page import finalize, hash_of, style_page
from ..rendering import environment
from . import Block, Document, Inline, Statement, spans_of
from .markdown import STATEMENT, statement_rows, why_open

TAGS = {"strong": "strong", "emphasis": "em", "code": "code"}


def to_html(document: Document, style: str = "") -> str:
    """The page as HTML; ``style`` has CSS rules of its own, for pictures."""
    rules = style_page(_read_file("document.css") + style)
    title = "".join(span.text for span in spans_of(document.title))
    page = _environment().get_template("document.html.j2")
    return page.render(document=document, title=title, style=Markup(rules), style_hash=Markup(hash_of(rules)))


def to_fragment(document: Document) -> str:
    """A ``<div>`` for a page of another program, with its own style, whose colours follow a notebook's theme or the system's."""
    rules = style_page(_read_file("document.css")).replace(":root", "&") + _read_file("notebook.css")
    return _environment().get_template("fragment.html.j2").render(document=document, style=Markup(rules))


def blocks_to_html(blocks: Iterable[Block]) -> Markup:
    """The HTML of blocks alone, for a page that is more than a Document."""
    return Markup(_environment().get_template("blocks.html.j2").module.show(tuple(blocks)))  # type: ignore[attr-defined]


def _read_file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    made = environment(finalize, autoescape=True, package=__package__, folder=".")
    made.filters.update(
        inline=render_inline, rows=_rows, kind=lambda block: type(block).__name__, svg=Markup, escape_lines=escape_lines
    )
    made.globals.update(statement_columns=STATEMENT, why_open=why_open)
    return made


def _rows(block: Statement) -> list[tuple[Inline, ...]]:
    closed = block.statement.is_closed
    return list(statement_rows(block.statement, block.layers, most=block.most)) if closed else []


def render_inline(inline: Inline) -> Markup:
    """Words of a line as HTML; a line break is ``<br>``."""
    made = Markup()
    for span in spans_of(inline):
        text = Markup("<br>").join(escape(escape_line(line)) for line in span.text.split("\n"))
        if tag := TAGS.get(span.style):
            text = Markup("<{0}>{1}</{0}>").format(Markup(tag), text)
        elif span.style:
            text = Markup('<span class="{}">{}</span>').format(span.style, text)
        made += Markup('<a href="{}">{}</a>').format(span.link, text) if span.link else text
    return made
