"""Formatting for reports: numbers with separators, signs, percentages, SI prefixes; names escaped for Markdown and terminals."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

# Marks that make a terminal or a browser show text in a different order from how it is written (overrides, isolates).
_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))
# GitHub's runner reads these as a command (actions/runner, ActionCommand.cs): :: first in a line, and ##[ anywhere.
_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\[)", re.MULTILINE)


def number(value: int) -> str:
    """``1234567`` as ``1,234,567``."""
    return f"{value:,}"


def format_signed(value: int) -> str:
    """As :func:`number`, with a sign: ``+1,234`` or ``-1,234``, and a plain ``0``."""
    return f"{value:+,}" if value else "0"


def percent(part: int, whole: int) -> str:
    """``part`` as a percentage of ``whole``, one decimal, from integers alone. A part that is not 0 never shows as 0.

    ``''`` if whole is 0; ``<0.1 %`` and ``>99.9 %`` where rounding would give 0.0 or 100.0 for a value that is neither.
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


def probability(share: float) -> str:
    """``0.036 %``: two digits of a share of random cases."""
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def ratio(total: int, work: int) -> str:
    """``1`` if they are equal, else the ratio to three decimals; never 1.000 or 0.000 for a ratio that is neither.

    If no work ran there is no ratio, and the amount itself is shown.
    """
    if total == work:
        return "1"
    if work == 0:
        return f"{format_signed(total)} FLOP"
    text = f"{float(round(Fraction(total, work), 3)):.3f}"
    if text == "1.000" or (text == "0.000" and total):
        return f"{text} ({format_signed(total - work if text == '1.000' else total)})"
    return "0" if total == 0 else text


def multiple(part: int, whole: int) -> str:
    """``part`` as a multiple of ``whole``: ``2`` if it is exactly that, else four decimals, from integers alone.

    A multiple that is not whole never looks whole: ``2.0000 (-3)`` is 3 short of it.  Zero over zero is ``0 / 0``.
    """
    if whole == 0:
        return "0 / 0" if part == 0 else f"{format_signed(part)} FLOP"
    if part % whole == 0:
        return number(part // whole)
    rounded = round(Fraction(part, whole) * 10_000)
    ones, rest = divmod(abs(rounded), 10_000)
    text = f"{'-' if rounded < 0 else ''}{ones:,}.{rest:04d}"
    return text if rest else f"{text} ({format_signed(part - rounded // 10_000 * whole)})"


_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")


def si(value: int, unit: str = "FLOP") -> str:
    """``3.63 MFLOPs``: three digits, rounded half up from the integer itself; below 1000 the exact number.

    A value that rounds up to 1000 takes the next prefix (999,500 is ``1.00 M``); past the last prefix the digits grow.
    """
    size = abs(value)
    if size < 1000:
        return f"{value} {unit}"
    power = min((len(str(size)) - 1) // 3, len(_PREFIXES) - 1)
    decimals = max(2 - (len(str(size)) - 1 - 3 * power), 0)
    step = 10 ** (3 * power - decimals)
    digits = (2 * size + step) // (2 * step)
    if digits >= 1000 and power < len(_PREFIXES) - 1 and not decimals:
        power, decimals, digits = power + 1, 2, 100
    elif digits >= 1000 and decimals:
        decimals, digits = decimals - 1, digits // 10
    units, fraction = divmod(digits, 10**decimals)
    sign = "-" if value < 0 else ""
    return f"{sign}{units:,}{f'.{fraction:0{decimals}d}' if decimals else ''} {_PREFIXES[power]}{unit}"


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
    text = clean(text)
    text = _MARKUP.sub(r"\\\1", text)
    text = re.sub(r"[&<]", lambda m: _ENTITIES[m.group()], text)
    return _EDGE_UNDERSCORE.sub(r"\\_", text)


# Text that GitHub turns into links besides its markup: links, addresses, and names of people and issues.
_LIVE = re.compile(
    r"(?i:https?|ftp)(?=://)|(?i:mailto|xmpp)(?=:)|(?i:\bwww)(?=\.)|(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|#(?=\d)|\b(?i:gh)-(?=\d)"
)


def deaden(text: str) -> str:
    """Markdown for a comment on GitHub: an empty HTML comment inside keeps links and mentions inactive."""
    return _LIVE.sub(r"\g<0><!-- -->", text)


def prose(text: str) -> str:
    """Escape a pair author's text: paragraphs, list items and `code spans` stay, the rest shows as written."""
    paragraphs = re.split(r"\n\s*\n|\n(?=[*-] )", text.strip())
    return "\n\n".join(_item(" ".join(p.split())) for p in paragraphs)


def _item(text: str) -> str:
    return "- " + _paragraph(text[2:]) if text.startswith(("* ", "- ")) else _paragraph(text)


def _paragraph(text: str) -> str:
    pieces = re.split(r"(`+[^`]+`+)", text)
    escaped = "".join(clean(p) if p.startswith("`") and len(p) > 1 else markdown(p) for p in pieces)
    return guard_start(escaped)


def guard_start(line: str) -> str:
    """The line of Markdown without a mark at its start that would make it a heading, a list or a quotation."""
    line = re.sub(r"^([#+\-=>])", r"\\\1", line)
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", line)


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
