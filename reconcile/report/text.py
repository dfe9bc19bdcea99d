"""Numbers and names as text: thousands separators, signs, percentages, and escaping of names nobody chose for us."""

from __future__ import annotations

import re
import unicodedata

# Marks that make a terminal or a browser show text in another order than it is written (overrides, isolates).
_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))


def number(value: int) -> str:
    """``1234567`` as ``1,234,567``."""
    return f"{value:,}"


def signed(value: int) -> str:
    """As :func:`number`, with the sign of an amount that is added: ``+1,234`` or ``-1,234``, and a plain ``0``."""
    return f"{value:+,}" if value else "0"


PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")


def si(value: int, unit: str = "FLOP") -> str:
    """``249,809,920`` as ``249.8 MFLOP``: one decimal, rounded from integers alone; whole below a thousand."""
    size, power = abs(value), 0
    while power < len(PREFIXES) - 1 and size >= 1000 ** (power + 1):
        power += 1
    if not power:
        return f"{value:,} {unit}"
    tenths = (20 * size + 1000**power) // (2 * 1000**power)
    if tenths >= 10_000 and power < len(PREFIXES) - 1:
        tenths, power = 10, power + 1
    return f"{'-' if value < 0 else ''}{tenths // 10:,}.{tenths % 10} {PREFIXES[power]}{unit}"


def percent(part: int, whole: int) -> str:
    """``part`` as a percentage of ``whole``, one decimal, from integers alone. Never rounds something to nothing.

    ``''`` where whole is 0; ``<0.1 %`` and ``>99.9 %`` where rounding would say 0.0 or 100.0 of what is neither.
    """
    if whole == 0:
        return ""
    part, whole = abs(part), abs(whole)
    tenths = (2000 * part + whole) // (2 * whole)
    if tenths == 0 and part:
        return "<0.1 %"
    if tenths == 1000 and part < whole:
        return ">99.9 %"
    return f"{tenths // 10:,}.{tenths % 10} %"


def clean(text: str) -> str:
    """One line that shows as written: control characters and direction marks become visible escapes."""
    return "".join(_visible(c) for c in text)


def _visible(char: str) -> str:
    if char in _BIDI or unicodedata.category(char) in _HIDDEN:
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char


_MARKUP = re.compile(r"([\\`*\[\]{}|~$])")
# An underscore between letters or digits is plain text in GitHub's Markdown; at the edge of a word it is emphasis.
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"&": "&amp;", "<": "&lt;"}


def markdown(text: str) -> str:
    """Escape a name for one Markdown table cell: it shows as written and does nothing else."""
    text = clean(text)
    text = _MARKUP.sub(r"\\\1", text)
    text = re.sub(r"[&<]", lambda m: _ENTITIES[m.group()], text)
    return _EDGE_UNDERSCORE.sub(r"\\_", text)


def prose(text: str) -> str:
    """Escape what a pair's author wrote: paragraphs, list items and `code spans` stay, the rest shows as written."""
    paragraphs = re.split(r"\n\s*\n|\n(?=[*-] )", text.strip())
    return "\n\n".join(_item(" ".join(p.split())) for p in paragraphs)


def _item(text: str) -> str:
    return "- " + _paragraph(text[2:]) if text.startswith(("* ", "- ")) else _paragraph(text)


def _paragraph(text: str) -> str:
    pieces = re.split(r"(`+[^`]+`+)", text)
    escaped = "".join(clean(p) if p.startswith("`") and len(p) > 1 else markdown(p) for p in pieces)
    escaped = re.sub(r"^([#+\-=>])", r"\\\1", escaped)
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", escaped)
