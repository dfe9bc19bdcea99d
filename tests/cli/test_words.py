"""Help, messages and docstrings are written for a reader in a hurry: some words of an older style never come back."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from reconcile.cli import cli

ROOT = Path(__file__).parents[2] / "reconcile"
FOLDERS = ("cli", "sweep", "audit", "launch", "drift", "decode")
SETTINGS = cli.context_settings  # click keeps a command's -h from its first context
OLD = re.compile(r"\b(nobody|somebody|whoever|so many)\b", re.IGNORECASE)


def old(text: str) -> list[str]:
    """The old words of a text, also those that a line break parts."""
    return OLD.findall(" ".join(re.sub(r'["#]', " ", text).split()))


@pytest.mark.parametrize(("name", "command"), list(cli.walk(click.Context(cli))), ids=str)
def test_no_help_has_an_old_word(name: str, command: click.Command) -> None:
    assert old(command.get_help(click.Context(command, info_name=name, **SETTINGS))) == []


def test_the_list_of_commands_has_no_old_word() -> None:
    assert old(cli.get_help(click.Context(cli, **SETTINGS))) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_message_and_no_docstring_has_an_old_word(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 5
    found = {path.relative_to(ROOT).as_posix(): old(path.read_text(encoding="utf-8")) for path in files}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("text", ["Whoever runs it", "what nobody\nsaid", 'so "\n    "many', "so\n# many of them"])
def test_the_scan_sees_an_old_word(text: str) -> None:
    assert len(old(text)) == 1
