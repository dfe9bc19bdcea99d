"""Reads whole numbers that users give as text, and words why a text is no size."""

from __future__ import annotations

from .errors import short

SIZE = 2**63 - 1
"""The largest dimension, and the most elements of a tensor, that any framework can represent."""
DIGITS = 40
"""Numbers with more digits are not read; 2^80 has 25."""


def no_size(text: str) -> str:
    """Why a text that ``integer`` did not read is not a size, as a sentence without a full stop."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdecimal():
        return (
            f"{short(stripped)} is too large for a size" if stripped.strip("0") else f"{short(stripped)} is not a size"
        )
    return f"{short(stripped)} is not a size"


def integer(text: str, least: int, most: int) -> int | None:
    """The text as a whole number from ``least`` to ``most``; None for anything else."""
    stripped = text.strip()
    if len(stripped) > DIGITS or not stripped.isascii() or not stripped.isdecimal():
        return None
    value = int(stripped)
    return value if least <= value <= most else None
