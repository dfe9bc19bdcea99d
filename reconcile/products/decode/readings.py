"""``Reading``: one number of a trace with its arithmetic; and the ranks of readings, from plain to far-fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Reading(NamedTuple):
    """One number of a trace, as grammar.Candidate has it. ``unit`` is MAC or FLOP, '' if it counts no operations. ``counter`` is
    the family of counters that would print it, '' for none of its own."""

    value: int
    rank: int
    unit: str
    what: str
    how: str = ""
    note: str = ""
    counter: str = ""


REPORTED, WORK, PART, DERIVED, LAYER = range(5)
"""Ranks: a counter's own total, the work that ran, a part or other reading of either, one derived in two steps, one layer."""

SHOWN = 3
"""The number of names of a list that are shown."""


def list_names(names: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
