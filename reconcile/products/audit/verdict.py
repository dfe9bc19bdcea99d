"""``verdicts``: which reading of its model each published number of an audit is, and how likely a match by chance is."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from ...core.causes import Cause
from ...core.errors import UsageError
from ...core.number_format import number
from ...core.records import FLOP, MAC
from ..decode.false_positives import SPAN, covered_share
from ..decode.printed_figure import PARAMETER, PrintedFigure, figure
from ..decode.readings import Candidate
from ..decode.search import describe_nearest, find_agreeing, select_comparable
from ..sweep.small_models import OF_CONFIGURATION
from .cell import candidates_of
from .claims import Claim
from .source_inference import Known, Row, SourceReading, row_of, weigh


class State(Enum):
    """What became of a claim."""

    EXPLAINED = "explained"
    CUT = "explained if cut off"
    OPEN = "not explained"
    NOT_RUN = "not run"
    NOT_READ = "not read"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim, and the reading that explains it.

    Attributes:
        claim: The row.
        state: Whether it was read and run, and whether a reading agrees.
        best: The simplest reading; None without one.
        matches: The number of readings that agree.
        numbers: The number of different numbers among them.
        chance: The probability that a random figure of as many digits has a reading as simple; None without a reading.
        macs: The multiply-adds of its model; 0 if unknown, and of a number of parameters.
        reason: Why there is no reading; '' if there is one.
        known: The readings of its source, by its other rows (source_inference.py).
        fitting: Those of ``known`` that agree with the figure.
        lost: The products without those of fused attention; 0 where none ran.
        made: What was made of a configuration: the class of the model.
    """

    claim: Claim
    state: State
    best: Candidate | None = None
    matches: int = 0
    numbers: int = 0
    chance: float | None = None
    macs: int = 0
    reason: str = ""
    known: tuple[Known, ...] = ()
    fitting: tuple[Known, ...] = ()
    lost: int = 0
    made: str = ""

    @property
    def evidence(self) -> str:
        """What the other rows of the source say of the reading that is shown, or of one that is the figure as well; '' if
        nothing."""
        first = min(self.fitting, key=lambda k: self.best is None or k.what != self.best.what, default=None)
        if first is None:
            return ""
        also = "" if self.best is not None and first.what == self.best.what else f"also fits {first.what}, "
        return f"{also}as the other {first.others:,} rows of this source"

    @property
    def of_parameters(self) -> bool:
        """Whether the figure, which could be read, is a number of parameters."""
        return self.state is not State.NOT_READ and figure(self.claim.printed).counts == PARAMETER

    @property
    def contradicts(self) -> bool:
        """Whether the claim names a unit, and its simplest reading is in the other one."""
        counts = figure(self.claim.printed).counts if self.best is not None else ""
        return bool(counts and self.best is not None and self.best.unit in (MAC, FLOP) and self.best.unit != counts)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know of the reading: that the unit is wrong, that digits are cut off, which class was made."""
        if self.best is None:
            return ()
        label = f"label is wrong: the number is {self.best.unit}s, printed as {figure(self.claim.printed).counts}s"
        cut = f"cut off, not rounded: {self.best.value:,}"
        held = ((self.contradicts, label), (self.state is State.CUT, cut), (bool(self.made), self.made))
        return tuple(text for holds, text in held if holds)


def verdicts(
    claims: Sequence[Claim], outcomes: Mapping[int, Mapping[str, Any]], wrong: Mapping[int, str]
) -> tuple[list[Verdict], list[SourceReading]]:
    """The verdicts on the rows of a table, each read by what the others of its source are; and what each source counts.
    ``outcomes`` and ``wrong`` are by the numbers of the rows."""
    rows: list[Row] = []
    ranks: dict[str, int] = {}
    for claim in claims:
        table = candidates_of(outcomes.get(claim.row, {}))
        if claim.row in wrong or not _macs(table):
            continue
        with contextlib.suppress(UsageError):  # not a number: its verdict says so
            if (wanted := figure(claim.printed)).counts != PARAMETER:
                rows.append(row_of(claim.row, claim.source, wanted, table))
        for c in table:
            ranks[c.what] = min(c.rank, ranks.get(c.what, c.rank))
    known, found = weigh(rows, ranks)
    each = [
        verdict(claim, outcomes.get(claim.row), wrong.get(claim.row, ""), known.get(claim.row, ())) for claim in claims
    ]
    return each, found


def verdict(claim: Claim, outcome: Mapping[str, Any] | None, wrong: str = "", known: tuple[Known, ...] = ()) -> Verdict:
    """The verdict on a claim, by what its cell found; ``wrong`` says why it has none, ``known`` what its source counts."""
    try:
        if wrong:
            raise UsageError(wrong)
        wanted = figure(claim.printed)
    except UsageError as error:
        return Verdict(claim, State.NOT_READ, reason=str(error))
    assert outcome is not None
    table = candidates_of(outcome)
    macs, lost = _macs(table), _products_outside_attention(table)
    if wanted.counts == PARAMETER:
        table, macs = select_comparable(table, wanted), 0
    if not (macs or (wanted.counts == PARAMETER and table)):
        return Verdict(claim, State.NOT_RUN, reason=_why_not(outcome))
    found = Verdict(claim, State.OPEN, macs=macs, known=known, lost=lost, made=_note_of_class(outcome))
    among, (matches, cut) = _compare(table, wanted, claim, known)
    if not matches:
        return replace(found, reason=". ".join(filter(None, (_far(among, wanted), found.made))))
    fitting = tuple(one for one in known if any(c.what == one.what for c in matches))
    place = {one.what: number for number, one in enumerate(known)}
    ranks = list(dict.fromkeys(c.rank for c in matches))  # the simplest reading's first
    best = min(
        matches, key=lambda c: (not _is_named_counter(c, claim), ranks.index(c.rank), place.get(c.what, len(place)))
    )
    rivals = [c for c in among if c.rank <= best.rank]
    numbers = len({c.value for c in matches})
    state = State.CUT if cut else State.EXPLAINED
    share = chance(rivals, wanted, macs, cut=cut) if macs else None
    return replace(found, state=state, best=best, matches=len(matches), numbers=numbers, chance=share, fitting=fitting)


def _note_of_class(outcome: Mapping[str, Any]) -> str:
    """What was made of a configuration, as the notes of the trace say; '' for any other model."""
    notes = (note for trace in outcome["traces"] for note in trace.get("notes", ()))
    return next((note for note in notes if OF_CONFIGURATION in note), "")


def _macs(table: Sequence[Candidate]) -> int:
    """The multiply-adds of the model, 0 if unknown."""
    return next((c.value for c in table if c.plain), 0)


def _products_outside_attention(table: Sequence[Candidate]) -> int:
    """The products without those of fused attention, 0 where none ran."""
    return next((c.value for c in table if c.note.startswith(Cause.ATTENTION_LEFT_OUT.value) and c.unit == MAC), 0)


def _compare(
    table: Sequence[Candidate], wanted: PrintedFigure, claim: Claim, known: Sequence[Known]
) -> tuple[tuple[Candidate, ...], tuple[tuple[Candidate, ...], bool]]:
    """The readings that such a figure is compared with, and those that agree (search.find_agreeing).

    They are what decode compares it with, and the totals of the counter that the source names, however few its digits.  Where
    the source's other rows say what it counts, a figure of few digits is compared with that, and with the multiply-adds alone:
    by itself it would agree with most of the list.  One that misses these may be printed in the other unit: a table that mixes
    MACs and FLOPs has the same readings twice as large, or half.
    """
    usual = select_comparable(table, wanted)
    whats = {one.what for one in known}
    mine = [c for c in table if _is_named_counter(c, claim) or c.what in whats]
    if not (known and wanted.few):
        among = (*usual, *(c for c in mine if c not in usual))
        return among, find_agreeing(among, wanted)
    among = tuple(dict.fromkeys([*(c for c in usual if c.plain), *mine]))
    found = find_agreeing(among, wanted)
    if not found[0] or found[1]:
        others = _convert_readings(among, table)
        turned = find_agreeing(others, wanted)
        if turned[0] and not turned[1]:
            return (*among, *others), turned
        among = (*among, *others) if not found[0] else among
    return among, found


def _convert_readings(readings: Iterable[Candidate], table: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """These readings in the other unit, as the table names them if it has them."""
    named = {(c.value, c.unit): c for c in sorted(table, key=lambda c: (c.rank, c.doubled), reverse=True)}
    made = [
        replace(c, value=2 * c.value, unit=FLOP, what=f"{c.what}, doubled", how=f"2 × {number(c.value)}")
        if c.unit == MAC
        else replace(c, value=c.value // 2, unit=MAC, what=f"{c.what}, halved", how=f"{number(c.value)} / 2")
        for c in readings
        if c.unit == MAC or (c.unit == FLOP and c.value % 2 == 0)
    ]
    return tuple(named.get((c.value, c.unit), c) for c in made)


def _is_named_counter(candidate: Candidate, claim: Claim) -> bool:
    """Whether it is a reading of the counter that the source names."""
    return claim.names(candidate.family)


def chance(rivals: Iterable[Candidate], wanted: PrintedFigure, macs: int, *, cut: bool = False) -> float:
    """The share of random figures of as many digits that one of these readings agrees with.

    Random: the logarithm is even between a tenth and ten times ``macs``. A reading takes the numbers that are printed as it is;
    where it would be cut off as well, also those of the figure below.
    """
    ranges = []
    for value in {c.value for c in rivals if c.value}:
        unit = 1 if wanted.exact else 10 ** max(0, len(str(value)) - wanted.length)
        printed = (2 * value + unit) // (2 * unit)
        first = min(printed, value // unit) if cut else printed
        ranges.append((unit * (first - 0.5), unit * (printed + 0.5)))
    return covered_share(ranges, macs)


def _why_not(outcome: Mapping[str, Any]) -> str:
    reasons = list(outcome["refused"].values())
    for trace in outcome["traces"]:
        ops = ", ".join(trace.get("unknown", ()))
        reasons += [trace["reason"]] * bool(trace["reason"]) + [f"the work of {ops} is unknown"] * bool(ops)
    return "; ".join(reasons) or "the model multiplies nothing"


def _far(among: Sequence[Candidate], wanted: PrintedFigure) -> str:
    """How far the nearest reading is; with advice, if the claim names no unit and seems to be a count of billions."""
    text = describe_nearest(among, wanted)
    if among and not wanted.counts and 1000 * wanted.value < min(c.value for c in among):
        text += ". Without a unit it counts single operations: write the unit in `claim`, such as GFLOPs"
    return text


def by_chance(
    verdicts: Sequence[Verdict], outcomes: Mapping[int, Mapping[str, Any]], draws: int = 1000
) -> tuple[int, int]:
    """Of random figures, each of the model of one of these claims and printed to the same place: how many are explained, and how
    many were drawn. The dice are always the same."""
    run = [v for v in verdicts if v.macs]
    dice = random.Random(len(run))
    explained = 0
    for _ in range(draws if run else 0):
        one = dice.choice(run)
        unit = figure(one.claim.printed).unit
        value = one.macs * SPAN ** dice.uniform(-1, 1)
        digits = round(value / unit)
        wanted = PrintedFigure("", digits, unit, figure(one.claim.printed).counts)
        _, (matches, cut) = _compare(candidates_of(outcomes[one.claim.row]), wanted, one.claim, one.known)
        explained += bool(matches) and not cut
    return explained, draws if run else 0
