"""Formats numbers, shapes and lists for reports: separators, signs, percentages, ratios, multiples and SI prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def number(value: int) -> str:
    """A number with separators: ``1234567`` as ``1,234,567``."""
    return f"{value:,}"


def format_count(n: int, noun: str) -> str:
    """``1 pair``, ``1,234 pairs``."""
    return f"{number(n)} {noun}{'' if n == 1 else 's'}"


def list_first(texts: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: the first of these texts, and how many others there are."""
    return ", ".join(texts[:most]) + (f" and {number(len(texts) - most)} more" if len(texts) > most else "")


def format_signed(value: int) -> str:
    """As :func:`number`, with a sign: ``+1,234`` or ``-1,234``, and a plain ``0``."""
    return f"{value:+,}" if value else "0"


def format_shape(shape: Sequence[int | None] | None) -> str:
    """``(1, 96)``, with ? for an unknown dimension; ? alone for an unknown rank."""
    return "?" if shape is None else "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def percent(part: int, whole: int) -> str:
    """``part`` as a percentage of ``whole`` without its sign, one decimal, from integers. A part that is not 0 never shows as 0.

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
    """A share, such as of random cases, as a percentage of two digits: ``0.036 %``."""
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
    """``3.63 MFLOP``: three digits, rounded half up from the integer itself; below 1000 the exact number.

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
