"""Untrusted names as text that shows as written and has no effect on a terminal, nor on the workflow whose log it is in."""

from __future__ import annotations

import re
import unicodedata

# Marks that make a terminal or a browser show text in a different order from how it is written (overrides, isolates).
_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))
# GitHub's runner reads these as a command (actions/runner, ActionCommand.cs): :: first in a line, and ##[ anywhere.
_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\[)", re.MULTILINE)


def clean(text: str) -> str:
    """One line that shows as written: control characters, direction marks and commands to a workflow become visible escapes."""
    return _unheard(text if text.isprintable() else "".join(_visible(c) for c in text))


def plain(text: str) -> str:
    """As :func:`clean`, for text of several lines: newlines and tabs stay."""
    return _unheard(text if text.isprintable() else "".join(c if c in "\n\t" else _visible(c) for c in text))


def _unheard(text: str) -> str:
    if "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda found: "\\x23" if found[1] is None else f"{found[1]}\\x3a", text)


def _visible(char: str) -> str:
    if char in _BIDI or unicodedata.category(char) in _HIDDEN:
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char
