"""Escapes untrusted text, such as names in a user's model, for Markdown, GitHub, CI logs, terminals, shells and LaTeX."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

# Marks that make a terminal or a browser show text in a different order from how it is written (overrides, isolates).
_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))
# GitHub's runner reads these as a command (actions/runner, ActionCommand.cs): :: first in a line, and ##[ anywhere.
_RUNNER_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\[)", re.MULTILINE)


def quote_words(words: Iterable[str]) -> str:
    """The words as a line for a shell. A word that does not show as written is in ``$'...'``, byte by byte."""
    return " ".join(
        shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_byte, _bytes(word)))}'" for word in words
    )


def _bytes(word: str) -> bytes:
    try:
        return word.encode("utf-8", "surrogateescape")  # as the system gave it
    except UnicodeEncodeError:
        return word.encode("utf-8", "surrogatepass")


def _byte(value: int) -> str:
    char = chr(value)
    return f"\\x{value:02x}" if not char.isascii() or not char.isprintable() else f"\\{char}" if char in "'\\" else char


_MARKUP = re.compile(r"([\\`*\[\]{}|~$])")
# An underscore between letters or digits is plain text in GitHub's Markdown; at the edge of a word it is emphasis.
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"&": "&amp;", "<": "&lt;"}


@lru_cache(maxsize=4096)  # ops, rules and layers repeat in every row
def markdown(text: str) -> str:
    """Escape a name for one Markdown table cell: it shows exactly as written."""
    text = escape_line(text)
    text = _MARKUP.sub(r"\\\1", text)
    text = re.sub(r"[&<]", lambda m: _ENTITIES[m.group()], text)
    return _EDGE_UNDERSCORE.sub(r"\\_", text)


def prose(text: str) -> str:
    """Escape a pair author's text for Markdown: paragraphs, list items and `code spans` stay, the rest shows as written."""
    paragraphs = re.split(r"\n\s*\n|\n(?=[*-] )", text.strip())
    return "\n\n".join(_item(" ".join(p.split())) for p in paragraphs)


def _item(text: str) -> str:
    return "- " + _paragraph(text[2:]) if text.startswith(("* ", "- ")) else _paragraph(text)


def _paragraph(text: str) -> str:
    pieces = re.split(r"(`+[^`]+`+)", text)
    escaped = "".join(escape_line(p) if p.startswith("`") and len(p) > 1 else markdown(p) for p in pieces)
    return guard_start(escaped)


def guard_start(line: str) -> str:
    """The line of Markdown without a mark at its start that would make it a heading, a list or a quotation."""
    line = re.sub(r"^([#+\-=>])", r"\\\1", line)
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", line)


def escape_line(text: str) -> str:
    """One line that shows as written: control characters, direction marks and commands to a workflow become visible escapes."""
    return _escape_runner_commands(text if text.isprintable() else "".join(_escape_char(c) for c in text))


def escape_lines(text: str) -> str:
    """As :func:`escape_line`, for text of several lines: newlines and tabs stay."""
    return _escape_runner_commands(
        text if text.isprintable() else "".join(c if c in "\n\t" else _escape_char(c) for c in text)
    )


def _escape_runner_commands(text: str) -> str:
    if "::" not in text and "##[" not in text:
        return text
    return _RUNNER_COMMAND.sub(lambda found: "\\x23" if found[1] is None else f"{found[1]}\\x3a", text)


def _escape_char(char: str) -> str:
    if char in _BIDI or unicodedata.category(char) in _HIDDEN:
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX, in one line."""
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$"}
    return "".join(special.get(c, f"\\{c}" if c in "_#$%&{}" else c) for c in escape_line(text))
