"""Names show as written."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.escaping import escape_line, markdown, prose, quote_words
from tests.report.tables import read

MARKUP = st.text(st.one_of(st.sampled_from("\\`*_{}[]<>()|~$&;#!-+=.:/@ \n1a"), st.characters()))
FEW = settings(max_examples=40)


@FEW
@given(MARKUP)
def test_a_name_in_a_markdown_cell_only_shows_as_written(name: str) -> None:
    page = read(f"# x\n\n| a | b |\n|--|--|\n| {markdown(name)} | next |\n")
    (table,) = page.tables
    ((shown, following),) = table.rows
    assert following == "next"
    assert shown.strip() == escape_line(name).strip()
    assert page.html == []


@FEW
@given(MARKUP)
def test_prose_holds_no_html(written: str) -> None:
    page = read("# x\n\n" + prose(written))
    assert page.html == []
    assert page.headings == ["x"]


def test_prose_keeps_paragraphs_and_code() -> None:
    assert (
        prose("One `a_b|<c>`\nline.\n\n# two *stars*\n* item\n- > item")
        == "One `a_b|<c>` line.\n\n\\# two \\*stars\\*\n\n- item\n\n- \\> item"
    )


@pytest.mark.parametrize("char", ["\n", "\x1b", "\u202e", "\u2028", "\x00", "\ud800"])
def test_characters_that_would_not_show_are_shown(char: str) -> None:
    shown = escape_line(f"a{char}b")
    assert char not in shown
    assert shown.startswith("a\\")


def test_letters_of_any_script_stay() -> None:
    assert escape_line("слой/שכבה/層/👩‍💻") == "слой/שכבה/層/👩‍💻"


WORDS = st.lists(st.binary(max_size=6).map(lambda raw: raw.replace(b"\0", b"")), min_size=1, max_size=20)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@settings(max_examples=10, deadline=None)
@given(WORDS)
def test_a_shell_reads_a_command_as_it_was_meant(words: list[bytes]) -> None:
    """Also file names that are no text, or act on a terminal."""
    line = quote_words(["printf", r"%s\0", *(raw.decode("utf-8", "surrogateescape") for raw in words)])
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == words


def test_a_plain_command_is_as_it_was() -> None:
    assert quote_words(["run", "a b", "it's", "größe", ""]) == shlex.join(["run", "a b", "it's", "größe", ""])
    assert quote_words(["m\x1b[31m\n.onnx", "\ud800"]) == r"$'m\x1b[31m\x0a.onnx' $'\xed\xa0\x80'"
