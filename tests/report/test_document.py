"""One Document in three formats: nothing of it is lost, and every text shows as it is written."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from reconcile.core.causes import Cause
from reconcile.core.escaping import escape_line
from reconcile.core.results import Adjustment
from reconcile.engine.statements import close_statement
from reconcile.report.document import (
    Code,
    Column,
    Document,
    Fold,
    Heading,
    Items,
    Picture,
    Span,
    Statement,
    Table,
    Text,
    mark_up,
    section,
    tabulate,
)
from reconcile.report.document.html import to_html
from reconcile.report.document.markdown import to_markdown
from reconcile.report.document.terminal import show, to_text

NASTY = "<script>alert(1)</script>|a `b` *c* __d__ [e](f) &lt; \u202eevil\x1b[31m $x$"
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=12)


class Words(HTMLParser):
    """The words that a browser shows, in the order of the page; those of a cell are one entry."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.partition("<body>")[2] or page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th", "p", "h1", "h2", "li", "summary", "figcaption"):
            self.found.append("")

    def handle_data(self, data: str) -> None:
        if self.found and data.strip():
            self.found[-1] += data


def page(**named: object) -> Document:
    return Document("Title", "The answer.", (), **named)  # type: ignore[arg-type]


def printed(document: Document, width: int = 100, *, quiet: bool = False) -> str:
    out = io.StringIO()
    show(document, Console(file=out, width=width, color_system=None), quiet=quiet)
    return out.getvalue()


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), WORDS)
@example([(NASTY, "x")], NASTY)
def test_names_show_as_written_in_html_and_in_markdown(rows: list[tuple[str, str]], title: str) -> None:
    document = Document(title, "", (Table((Column("a"), Column("b", "right")), tuple(rows)),))
    wanted = [escape_line(text) for text in (title, "a", "b", *(cell for row in rows for cell in row))]
    assert [text.strip() for text in Words(to_html(document)).found] == wanted
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(to_markdown(document).partition("\n\n")[2])
    assert [text.strip() for text in Words(body).found] == wanted[1:]


def test_each_block_is_in_each_format_that_shows_it() -> None:
    document = Document(
        "Title",
        "The answer.",
        (
            Heading("Part"),
            Text(mark_up("Run `it`: *now* or **never**, see [there](x.md).")),
            Code("a ``` b"),
            Items(("one", ("two ", Span("strong", "strong")))),
            Picture("Bars", "two bars", "<svg></svg>", "bars.svg"),
            Fold("More", (Text("inside"),)),
        ),
        problems=("A problem.",),
        command="again",
        comment="do not edit",
    )
    markdown, html, screen = to_markdown(document), to_html(document), printed(document)
    assert markdown.split("\n\n") == [
        "# Title", "<!-- do not edit -->", "The answer.", "## Part", "Run `it`: *now* or **never**, see [there](x.md).",
        "````text\na ``` b\n````", "- one\n- two **strong**",
        "![two bars](bars.svg)", "<details><summary>More</summary>", "inside", "</details>", "`again`\n",
    ]  # fmt: skip
    assert Words(html).found == [
        "Title", "The answer.", "Part", "Run it: now or never, see there.a ``` b", "one",
        "two strong", "Bars", "More", "inside", "Written by again",
    ]  # fmt: skip
    assert "<svg></svg>" in html
    assert [line for line in screen.split("\n") if line] == [
        "Title", "Part", "Run it: now or never, see there.", "a ``` b", "one", "two strong", "A problem.", "The answer.",
    ]  # fmt: skip
    assert printed(document, quiet=True).split("\n") == ["A problem.", "The answer.", ""]


def test_a_statement_foots_in_every_format() -> None:
    line = Adjustment(next(iter(Cause)), "head", "torch.Linear", "a", 30, ())
    statement = close_statement("a", "b", (70, 100), (line,), ())
    for text in (
        to_markdown(Document("t", "", (Statement(statement),))),
        printed(Document("t", "", (Statement(statement),))),
    ):
        amounts = [int(found.replace(",", "")) for found in re.findall(r"(?<![\w.])[+-]?\d[\d,]*(?![\w.])", text)]
        assert (amounts[0], amounts[-1]) == (70, 100)
        assert amounts[0] + amounts[1] + amounts[-2] == amounts[-1]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("first", ["left", "group"])
def test_a_table_that_does_not_fit_loses_no_number(width: int, first: str) -> None:
    """But those that a terminal leaves out: ``page`` always, ``some`` where the others fit without them."""
    columns = (Column("name", first), Column("kind"), *(Column(f"count {i}", "right") for i in range(4)))
    columns += (Column("more", "right", "some"), Column("most", "right", "page"))
    rows = tuple((f"row {r // 2}", f"kind {r}", *(str(10**11 + 100 * r + i) for i in range(6))) for r in range(4))
    shown = printed(Document("t", "", (Table(columns, rows),)), width)
    lost = {cell for row in rows for cell in row if cell not in shown}
    pages = {row[-1] for row in rows}
    assert lost in (pages, {cell for row in rows for cell in row[-2:]})
    assert lost == pages or "count 0" in shown.split("\n")[2]
    assert shown.count("row 0") == (1 if first == "group" else 2)
    assert max(map(len, shown.split("\n"))) <= max(width, 40)


@given(st.sampled_from("#-+>=1"), WORDS)
def test_a_line_is_no_heading_and_no_list(mark: str, word: str) -> None:
    text = f"{mark}. {word}" if mark.isdigit() else f"{mark} {word}"
    page = to_markdown(Document("t", "", (Text(text), Items((text,)))))
    tokens = MarkdownIt("commonmark").parse(page.partition("\n\n")[2])
    assert [token.type for token in tokens if token.type.endswith("_open")] == [
        "paragraph_open", "bullet_list_open", "list_item_open", "paragraph_open",
    ]  # fmt: skip


def test_a_table_without_titles_has_no_head() -> None:
    document = Document("t", "", (tabulate(">|", (("2 x", "a"), ("30 x", "b"))),))
    assert to_text(document) == "t\n\n 2 x  a\n30 x  b\n\n"


@given(st.text("`a b", min_size=1, max_size=8).filter(str.strip))
def test_code_in_a_line_ends_where_it_ends(text: str) -> None:
    body = MarkdownIt("commonmark").render(to_markdown(Document("t", "", (), command=f"x{text}x")).partition("\n\n")[2])
    assert body == f"<p><code>x{text}x</code></p>\n"


def test_a_section_without_content_has_no_heading() -> None:
    assert section("Part", Items(()), Table((Column("a"),), ()), None) == ()
    assert list(section("Part", Items(("x",)))) == [Heading("Part"), Items(("x",))]
