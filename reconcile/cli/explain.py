"""``reconcile explain``: the page of a cause, a convention or a counter."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from .streams import say

if TYPE_CHECKING:
    from ..pages import Page, Rule

WIDTH = 78


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..pages import names, page

    return [CompletionItem(name, help=page(name).meaning) for name in names() if name.startswith(incomplete)]


@click.command()
@click.argument("name", shell_complete=_complete)
def explain(name: str) -> None:
    """Explain a cause, a convention or a counter.

    NAME is one that a report uses. The same pages are in docs/ of the repository.
    """
    from ..core.errors import unknown
    from ..pages import names, page

    if name not in names():
        raise unknown("cause, convention or counter", name, names())
    say("\n".join(lines(page(name))), styled=True)


def lines(page: Page) -> Iterator[str]:
    """The page for a terminal: paragraphs wrapped, programs as they are, links spelled out."""
    parts = [[click.style(page.name, bold=True), _wrapped(page.meaning)], [_wrapped(page.facts)]]
    for block in re.split(r"(```.*?```)", page.text, flags=re.DOTALL):
        if block.startswith("```"):
            parts.append([f"    {line}".rstrip() for line in block.splitlines()[1:-1]])
        else:
            parts += _prose(block.strip())
    for part in (*parts, *_rules(page)):
        yield from (*part, "")


def _prose(text: str) -> Iterator[list[str]]:
    for part in re.split(r"\n\s*\n", text):
        if part.startswith("## "):
            yield [click.style(part[3:], bold=True)]
        elif part.startswith("- "):
            yield [_wrapped(_spelled(item), "  - ", "    ") for item in re.split(r"\n- ", part[2:])]
        elif part:
            yield [_wrapped(_spelled(part))]


def _rules(page: Page) -> Iterator[list[str]]:
    from ..pages import LETTERS, short

    if page.rules:
        yield [click.style("What it counts, by operation", bold=True)]
        yield [_wrapped(LETTERS)]
        yield [
            _wrapped(
                f"{', '.join(dict.fromkeys(map(short, r.ops)))}: {r.formula}{_versions(r)}. {r.source}", "  - ", "    "
            )
            for r in page.rules
        ]


def _versions(rule: Rule) -> str:
    return f" (versions {rule.versions})" if rule.versions else ""


def _wrapped(text: str, first: str = "  ", rest: str = "  ") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _spelled(text: str) -> str:
    """Links within the pages as their text, links elsewhere with their address (alone, where the text is a thread's name)."""
    text = re.sub(r"\[[\w./-]*#\d+\]\((https://[^)]+)\)", r"\1", text)
    text = re.sub(r"\[([^\]]+)\]\((https://[^)]+)\)", r"\1 (\2)", text)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
