"""Untrusted names as text that shows as written and has no effect on a terminal."""

from __future__ import annotations

import unicodedata

# Marks that make a terminal or a browser show text in a different order from how it is written (overrides, isolates).
_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))


def clean(text: str) -> str:
    """One line that shows as written: control characters and direction marks become visible escapes."""
    return text if text.isprintable() else "".join(_visible(c) for c in text)


def plain(text: str) -> str:
    """As :func:`clean`, for text of several lines: newlines and tabs stay."""
    return text if text.isprintable() else "".join(c if c in "\n\t" else _visible(c) for c in text)


def _visible(char: str) -> str:
    if char in _BIDI or unicodedata.category(char) in _HIDDEN:
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char
