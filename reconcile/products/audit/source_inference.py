"""What a source counts, inferred from all of its rows: a mixture of readings and chance, fitted to its published numbers.

Each number of a source is either a reading of its model, printed, or chance: a number whose logarithm is uniform between a
tenth and ten times the multiply-adds (decode/false_positives.py). A source is a mixture of readings, each with a share, and of
chance; the shares are those that make its numbers likeliest (expectation maximisation; Dempster, Laird and Rubin 1977). A
reading belongs to the source if it makes the numbers ``ODDS`` times as likely as they are without it, for each reading that was
tried. A release that changed a kernel makes two readings of one source; rows with the very same source text say which of them a
number follows.

No row is evidence for itself. What a row adds to the likelihood of a reading is taken off before the row is read by it, and so is
the row from the number of rows that support the reading.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..decode.false_positives import SPAN, printed_range
from ..decode.printed_figure import PrintedFigure
from ..decode.readings import Candidate

ODDS = 10_000
"""How many times likelier a reading makes a source's figures, for each reading that was tried."""
OTHERS = 3
"""Rows that support a reading, at least, besides the one that is read by it."""
LEAST = 1e-18
"""The chance of a figure whose rounding is lost in a float, because it has more digits than that holds."""
STEPS = 30
"""Steps of the estimation of shares; later ones change no digit that is shown."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: the ``readings`` of its model that round to it, and the share of random figures that are printed as it is.
    ``text`` is its source as the table has it."""

    number: int
    text: str
    readings: frozenset[str]
    chance: float


@dataclass(frozen=True, slots=True)
class Known:
    """A reading of a source, for one of its rows: ``others`` are the other rows that are read so."""

    what: str
    others: int


@dataclass(frozen=True, slots=True)
class SourceReading:
    """A reading of a source: ``rows`` of its ``of`` rows are read so, and their figures are 10 ** ``power`` times as likely as
    without it."""

    source: str
    what: str
    rows: int
    of: int
    power: float


def source_of(text: str) -> str:
    """The source: what stands before the first comma or semicolon, where release, table and row follow."""
    return re.split(r"[,;]", text, maxsplit=1)[0].strip()


def row_of(number: int, text: str, wanted: PrintedFigure, table: Sequence[Candidate]) -> Row:
    """A figure among the readings of its model. A figure of zero says nothing: it has no reading and is all chance."""
    if not wanted.digits:
        return Row(number, text, frozenset(), 1.0)
    low, high = printed_range(wanted.digits, wanted.unit, wanted.length)
    readings = frozenset(c.what for c in table if c.value and (wanted.exact or not c.exact) and wanted.holds(c.value))
    share = math.log(high / low) / (2 * math.log(SPAN))
    return Row(number, text, readings, min(1.0, max(LEAST, share)))


def weigh(rows: Sequence[Row], ranks: Mapping[str, int]) -> tuple[dict[int, tuple[Known, ...]], list[SourceReading]]:
    """The readings by which each row may be read, the likeliest first; and those of every source. ``ranks`` says how far-fetched
    a reading is: of two that fit equally well, the simpler one is taken."""
    sources: dict[str, list[Row]] = {}
    for row in rows:
        sources.setdefault(source_of(row.text), []).append(row)
    known: dict[int, tuple[Known, ...]] = {}
    found: list[SourceReading] = []
    for name, group in sources.items():
        _weigh(name, group, ranks, known, found)
    return known, found


def _weigh(
    name: str,
    rows: list[Row],
    ranks: Mapping[str, int],
    known: dict[int, tuple[Known, ...]],
    found: list[SourceReading],
) -> None:
    counts = Counter(what for row in rows for what in row.readings)
    tried = sorted((what for what in counts if counts[what] >= OTHERS), key=lambda what: (ranks[what], what))
    least = math.log(ODDS * max(1, len(counts)))
    chosen = _choose_readings(rows, tried, least)
    if not chosen:
        return
    shares, each = _fit(rows, chosen)
    likeliest = {
        row.number: max(row.readings & shares.keys(), key=lambda what: shares[what], default="") for row in rows
    }
    gains: dict[str, list[float]] = {}
    for what in chosen:
        _, without = _fit(rows, [one for one in chosen if one != what])
        gains[what] = [a - b for a, b in zip(each, without, strict=True)]
    total = {what: sum(gains[what]) for what in chosen}
    by_text, read = _by_text(rows, shares), Counter(likeliest.values())
    for place, row in enumerate(rows):
        mine = _posterior(row, shares)
        usable: list[tuple[float, int, Known]] = []
        for what in chosen:
            others = read[what] - (likeliest[row.number] == what)
            if others >= OTHERS and total[what] - gains[what][place] >= least:
                weight = by_text[row.text][what] - mine.get(what, 0.0) + shares[what]
                usable.append((-weight, len(usable), Known(what, others)))
        known[row.number] = tuple(one for _, _, one in sorted(usable, key=lambda item: item[:2]))
    found += [
        SourceReading(name, what, read[what], len(rows), total[what] / math.log(10))
        for what in chosen
        if read[what] > OTHERS
    ]


def _choose_readings(rows: Sequence[Row], tried: Sequence[str], least: float) -> list[str]:
    """The readings, one at a time: the one that makes the figures likeliest, as long as it makes them likelier by ``least``, the
    logarithm of a factor."""
    chosen: list[str] = []
    now = sum(_fit(rows, chosen)[1])
    while True:
        best, what = now + least, ""
        for one in tried:
            if one not in chosen and (likelihood := sum(_fit(rows, [*chosen, one])[1])) > best + 1e-9 * abs(best):
                best, what = likelihood, one
        if not what:
            return chosen
        chosen, now = [*chosen, what], best


def _fit(rows: Sequence[Row], chosen: Sequence[str]) -> tuple[dict[str, float], list[float]]:
    """The share of each reading; and the logarithm of the likelihood of each figure."""
    shares = {what: 1 / (len(chosen) + 1) for what in chosen}
    agreed = [([what for what in chosen if what in row.readings], row.chance) for row in rows]
    for _ in range(STEPS if chosen else 0):
        luck, taken = 1 - sum(shares.values()), dict.fromkeys(chosen, 0.0)
        for readings, chance in agreed:
            whole = luck * chance + sum(shares[what] for what in readings)
            for what in readings:
                taken[what] += shares[what] / whole
        # half a row of chance stays: no figure becomes impossible
        shares = {what: count / (len(rows) + 0.5) for what, count in taken.items()}
    luck = 1 - sum(shares.values())
    return shares, [math.log(luck * chance + sum(shares[what] for what in readings)) for readings, chance in agreed]


def _posterior(row: Row, shares: Mapping[str, float]) -> dict[str, float]:
    """How likely each reading is for a figure that some reading explains."""
    agreed = [what for what in shares if what in row.readings]
    whole = (1 - sum(shares.values())) * row.chance + sum(shares[what] for what in agreed)
    return {what: shares[what] / whole for what in agreed}


def _by_text(rows: Sequence[Row], shares: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """How many rows of each source text follow each reading, each row divided among the readings that it may be."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        counts = found.setdefault(row.text, dict.fromkeys(shares, 0.0))
        for what, share in _posterior(row, shares).items():
            counts[what] += share
    return found
