"""``Candidate``: one reading of a published number, with its arithmetic; and the ranks of readings, from plain to far-fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.conventions import MATMUL
from ...core.number_format import number
from ...core.records import MAC

REPORTED, WORK, PART, DERIVED, LAYER = range(5)
"""Ranks: a counter's own total, the work that ran, a part or other reading of either, one derived in two steps, one layer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reading of a published number.

    Attributes:
        value: Its number.
        rank: How far-fetched it is, from REPORTED to LAYER.
        unit: MAC, FLOP or PARAMETER.
        what: A sentence on it.
        how: The arithmetic; '' if there is none to show.
        note: A caution for the reader; '' for none.
        where: The environments that give it.
        exact: Whether it is so close to another one that no rounded figure can mean it.
        counter: The counter that it is a reading of; '' for the work that ran.
        printed: Whether the counter printed this very number as its total.
        family: The family of counters that would print what is read here from the work that ran; '' for none.
    """

    value: int
    rank: int
    unit: str
    what: str
    how: str = ""
    note: str = ""
    where: tuple[str, ...] = ()
    exact: bool = False
    counter: str = ""
    printed: bool = False
    family: str = ""

    @property
    def plain(self) -> bool:
        """Whether it is the multiply-adds of the work that ran, which owe nothing to any counter."""
        return self.rank == WORK and self.unit == MAC

    @property
    def doubled(self) -> bool:
        """Whether it is twice these multiply-adds, the simplest count of FLOPs."""
        return self.rank == WORK and self.what.endswith(f"by the convention {MATMUL.name}")


def derive(value: int, rank: int, unit: str, what: str, terms: str, note: str = "", family: str = "") -> Candidate:
    """A candidate of terms, such as ``2 × 35``, that make its number."""
    return Candidate(value, rank, unit, what, f"{terms} = {number(value)}", note, family=family)


SHOWN = 3
"""The number of names of a list that are shown."""


def list_names(names: Sequence[str]) -> str:
    """The first few names, as a text: ``a, b, c, ...``."""
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
