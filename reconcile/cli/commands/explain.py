"""``reconcile explain``: the page of a cause, a convention or a counter, and the lists of all names."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from ..streams import say

if TYPE_CHECKING:
    from ...pages import Page, Rule

WIDTH = 78


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ...model_zoo.loading import zoo_names
    from ...pages import names, page
    from ..name_lists import KINDS

    about = {
        **dict.fromkeys(KINDS, ""),
        **{name: page(name).meaning for name in names()},
        **dict.fromkeys(zoo_names(), ""),
    }
    return [CompletionItem(name, help=about[name] or None) for name in about if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=_complete)
def explain(name: str | None) -> None:
    """Explain a name in a report, or list all names.

    \b
    reconcile explain op-not-counted
    reconcile explain counters    models, causes and conventions are lists, too

    NAME is a cause, a convention, a counter or a model. Causes are listed in booking order: the first cause that applies gets a
    difference whole.
    """
    from ...core.errors import UsageError, unknown
    from ...core.registry import known_counters
    from ...model_zoo.loading import zoo_names
    from ...pages import names as pages
    from ...pages import page
    from ..name_lists import KINDS, model, overview, table

    if name is None:
        say(overview(), nl=False)
    elif not name.strip():
        raise UsageError("NAME is given without a value: give it one, or leave it out.")
    elif name in KINDS:
        say(table(name), nl=False)
    elif name in pages():
        say("\n".join(lines(page(name))), styled=True)
    elif name in known_counters():
        say("\n".join(lines(page(known_counters()[name].family))), styled=True)
    elif name in zoo_names():
        say(model(name))
    else:
        raise unknown("name", name, {*KINDS, *pages(), *known_counters(), *zoo_names()})


def lines(page: Page) -> Iterator[str]:
    """The page for a terminal: paragraphs wrapped, programs as they are, links spelled out."""
    parts = [[click.style(page.name, bold=True), _wrap_text(page.meaning)], [_wrap_text(page.facts)]]
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
            yield [_wrap_text(_spell_links(item), "  - ", "    ") for item in re.split(r"\n- ", part[2:])]
        elif part:
            yield [_wrap_text(_spell_links(part))]


def _rules(page: Page) -> Iterator[list[str]]:
    from ...pages import LETTERS_OF_FORMULAS, short

    if page.rules:
        yield [click.style("What it counts, by operation", bold=True)]
        yield [_wrap_text(LETTERS_OF_FORMULAS)]
        yield [
            _wrap_text(
                f"{', '.join(dict.fromkeys(map(short, r.ops)))}: {r.formula}{_versions(r)}. {r.source}", "  - ", "    "
            )
            for r in page.rules
        ]


def _versions(rule: Rule) -> str:
    return f" (versions {rule.versions})" if rule.versions else ""


def _wrap_text(text: str, first: str = "  ", rest: str = "  ") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _spell_links(text: str) -> str:
    """Links within the pages as their text, links elsewhere with their address (alone, where the text is a thread's name)."""
    text = re.sub(r"\[[\w./-]*#\d+\]\((https://[^)]+)\)", r"\1", text)
    text = re.sub(r"\[([^\]]+)\]\((https://[^)]+)\)", r"\1 (\2)", text)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
