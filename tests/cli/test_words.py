"""Help, messages and docstrings are written for a reader in a hurry: some words of an older style never come back."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from reconcile.cli import cli

ROOT = Path(__file__).parents[2]
FOLDERS = ("reconcile", "adapters", "model_zoo")
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


def in_folder(folder: Path) -> dict[str, list[str]]:
    """The old words in docstrings, comments and strings of the folder's Python files, by file."""
    found = {path: old(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}
    return {path.relative_to(folder).as_posix(): words for path, words in found.items() if words}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_comment_or_string_has_an_old_word(folder: str) -> None:
    assert len(list((ROOT / folder).rglob("*.py"))) > 40
    assert in_folder(ROOT / folder) == {}


PLANTED = {
    "docstring.py": '"""Of which nobody\nknows."""\n',
    "comment.py": "x = 1  # whoever asks\n",
    "string.py": 'x = "as somebody " f"said {1}"\n',
    "halves.py": 'x = (\n    "so "\n    "many"\n)\n',
}


def test_the_scan_of_a_folder_sees_a_planted_word(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, text in PLANTED.items():
        (tmp_path / "deep" / name).write_text(text, encoding="utf-8")
    (tmp_path / "deep" / "plain.py").write_text('"""Unknown, as many as there are."""\n', encoding="utf-8")
    assert sorted(in_folder(tmp_path)) == sorted(f"deep/{name}" for name in PLANTED)


@pytest.mark.parametrize("text", ["Whoever runs it", "what nobody\nsaid", 'so "\n    "many', "so\n# many of them"])
def test_the_scan_sees_an_old_word(text: str) -> None:
    assert len(old(text)) == 1
