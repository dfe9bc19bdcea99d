"""Everything that can be typed is documented, and what the documents say to type is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import click
import pytest

from reconcile.cli import cli
from reconcile.cli.name_lists import KINDS
from reconcile.core.conventions import BUILT_IN
from reconcile.core.registry import known_counters
from reconcile.launch.environments.definitions import load
from reconcile.model_zoo.loading import zoo_names
from reconcile.pages import names

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text() for path in DOCUMENTS}
WRITTEN = "\n".join(text for name, text in TEXTS.items() if name == "README.md" or name.startswith("docs/"))


def options() -> dict[str, set[str]]:
    """The options of every command, and of the group itself under ''."""
    found = {
        name: {o for p in command.params for o in p.opts if o.startswith("-")} | {"--help", "-h"}
        for name, command in cli.walk(click.Context(cli))
    }
    return found | {"": {o for p in cli.params for o in p.opts} | {"--help", "-h"}}


OPTIONS = options()
WRITTEN_BY_NEW = "mine"
"""The counter that documents write with ``reconcile counter new``."""


def test_every_command_and_option_is_documented() -> None:
    commands = TEXTS["docs/cli.md"]
    for name in filter(None, OPTIONS):
        section = commands.split(f"## reconcile {name}\n")[1].split("\n## ")[0]
        missing = [o for o in OPTIONS[name] if not re.search(rf"(?<![\w-]){re.escape(o)}\b", section)]
        assert missing == [], name


def test_every_name_is_documented() -> None:
    wanted = [*names(), *zoo_names(), *filter(None, OPTIONS)]
    alone = {n: rf"{re.escape(n)}(?<![\w.@-]{re.escape(n)})(?![\w@-])" for n in wanted}  # begins with a literal: fast
    assert [n for n in wanted if not re.search(alone[n], WRITTEN)] == []


def typed() -> list[tuple[str, str]]:
    """Every command line that a document shows: (document, what follows ``reconcile``)."""
    shown = [
        (document, line)
        for document, text in TEXTS.items()
        if document != "docs/cli.md"
        for line in re.findall(r"(?:^|`|\$ |: )reconcile ([a-z][^\n`|]*)", text, re.M)
    ]
    return [(document, line.partition(" #")[0]) for document, line in shown]


ENDS = ".,;:)"
VALUES: dict[str, Callable[[str], bool]] = {
    "--model": lambda v: v in zoo_names() or v.startswith("./") or v.isupper() or v == "NAME|FILE.py",
    "--counter": lambda v: v in known_counters() or v in ("all", WRITTEN_BY_NEW) or v.isupper(),
    "--from": lambda v: v in known_counters() or v.startswith("trace@"),
    "--to": lambda v: v in known_counters() or v.startswith("trace@"),
    "--convention": lambda v: v in BUILT_IN,
    "--environment": lambda v: v in load(None) or v.isupper(),
    "explain": lambda v: v in [*names(), *KINDS] or v.isupper() or v == WRITTEN_BY_NEW,
}
"""What may follow an option, or a command."""


def wrong_words(line: str) -> list[str]:
    """The words of a command line that nothing of this tool is called."""
    words = line.split()
    name = next((name for name in (" ".join(words[:2]), words[0].rstrip(ENDS)) if name in OPTIONS), None)
    if name is None:
        return words[:1]
    lost = [w for w in words if w.startswith("--") and w.partition("=")[0].rstrip(ENDS) not in OPTIONS[name]]
    return lost + [v for key, v in dict(pairwise(words)).items() if key in VALUES and not VALUES[key](v.rstrip(ENDS))]


def test_what_a_document_says_to_type_is_there() -> None:
    assert [(document, line, wrong) for document, line in typed() if (wrong := wrong_words(line))] == []
    assert wrong_words("rnu --model x") == ["rnu"]
    assert wrong_words("run --modle x --counter no_such") == ["--modle", "no_such"]


def test_no_document_names_a_counter_that_is_gone() -> None:
    for document, text in TEXTS.items():
        found = set(re.findall(r"tf\.profiler@\w+", text))
        assert found - set(known_counters()) == set(), document


def links() -> list[tuple[str, str]]:
    found = []
    for document, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target:
                found.append((document, target))
    return found


def test_a_link_leads_somewhere() -> None:
    found = links()
    assert len(found) > 100
    assert [(document, to) for document, to in found if not (ROOT / document).parent.joinpath(to).exists()] == []


INDICES = {
    "README.md": (r"[A-Z]+\.md|docs/README\.md", {"README.md", "CHANGELOG.md"}),
    "docs/README.md": (r"docs/\w+\.md", {"docs/README.md"}),
}
"""The pages that an index has to link, and those of them that it need not."""


@pytest.mark.parametrize("index", INDICES)
def test_every_page_is_linked(index: str) -> None:
    pattern, others = INDICES[index]
    linked = {(ROOT / index).parent.joinpath(target).resolve() for document, target in links() if document == index}
    pages = [name for name in TEXTS if re.fullmatch(pattern, name) and name not in others]
    assert len(pages) > 3
    assert [name for name in pages if (ROOT / name).resolve() not in linked] == []
