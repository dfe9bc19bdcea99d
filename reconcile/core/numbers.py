"""Numbers that users give, on the command line or in Python: bounded, and refused in a sentence."""

from __future__ import annotations

import math

from .errors import UsageError, short

LONGEST = 10**8
"""Seconds that may be waited for anything: three years."""
SIZE = 2**63 - 1
"""The largest dimension, and the most elements of a tensor, that any framework can say."""
DIGITS = 40
"""Digits of a number that is read at all; 2^80 has 25."""


def seconds(given: object, name: str = "timeout") -> float:
    """A time limit. Raises UsageError for what is no number above 0, or is so large that nothing ever ends by it."""
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not 0 < value <= LONGEST or isinstance(given, bool):
        raise UsageError(f"{name} must be a number of seconds above 0 and up to {LONGEST:,}, not {short(given)}.")
    return value


def whole(given: str, least: int, most: int) -> int | None:
    """The whole number that the text is, if it lies between these two; None for anything else."""
    text = given.strip()
    if len(text) > DIGITS or not text.isascii() or not text.isdecimal():
        return None
    value = int(text)
    return value if least <= value <= most else None
