"""``search``: finds a published number of a model among the candidates of grammar.py, the simplest reading first.

``describe_nearest`` says how far the others are, ``find_release_bounds`` between which releases of a counter a reading holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from packaging.version import InvalidVersion, Version

from ...core.conventions import BUILT_IN, Convention
from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED
from ...core.number_format import si
from ...core.records import Ledger
from ...core.registry import known_counters
from .false_positives import by_chance
from .grammar import Source, candidates
from .printed_figure import FEW, PARAMETER, PrintedFigure
from .readings import DERIVED, LAYER, PART, WORK, Candidate


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a published figure of a model is.

    Attributes:
        model: The model's name.
        figure: The figure as it was printed.
        matches: The candidates that agree with it, by rank.
        cut: Whether no candidate rounds to the figure, but these have its digits if the others are cut off, as each of them says.
        other_unit: Whether no candidate in the figure's unit agrees with it, but these in another unit do.
        near: The nearest of the candidates that do not agree, nearest first.
        plain: The candidates that are the multiply-adds of the work that ran.
        searched: The number of candidates.
        environments: The environments whose results were read.
        left_out: A sentence on each trace whose total is unknown.
        notes: A sentence on each run that gave nothing.
        chance: The share of random figures of as many digits that are explained as well (false_positives.by_chance); None if that
            cannot be said.
        distance: How far the nearest reading of the whole model is, in words.
    """

    model: str
    figure: PrintedFigure
    matches: tuple[Candidate, ...]
    cut: bool
    other_unit: bool
    near: tuple[Candidate, ...]
    plain: tuple[Candidate, ...]
    searched: int
    environments: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    chance: float | None = None
    distance: str = ""

    @property
    def values(self) -> tuple[int, ...]:
        """The distinct numbers that the figure tells apart, the best explained first."""
        numbers = tuple(dict.fromkeys(c.value for c in self.matches))
        return numbers[:1] if self.merged else numbers

    @property
    def merged(self) -> bool:
        """Whether the readings are as good as one: they differ by less than the last of the figure's few digits."""
        return self.figure.few and not self.figure.exact

    @property
    def ambiguous(self) -> bool:
        """Whether several numbers have these digits."""
        return len(self.values) > 1

    @property
    def doubtful(self) -> bool:
        """Whether neither a counter nor the work has this total, and the number is so short that it may be a coincidence: the
        sums and products of a small network's few sizes lie close together."""
        return bool(self.matches) and not self.close and self.figure.length <= SHORT

    @property
    def close(self) -> bool:
        """Whether the total of a counter, or of the work, agrees with the figure, so that nothing else needs to run."""
        return bool(self.matches) and (self.matches[0].rank <= WORK or self.merged)

    @property
    def exit_code(self) -> int:
        """0 if the figure is explained, even if ambiguous; else 1."""
        return EXIT_OK if self.matches else EXIT_UNEXPLAINED


NEAR = 10
SHORT = 4
"""Up to this number of digits, what is no total of a counter or of the work may be a coincidence."""
LARGE = 900
"""From here on, in per cent, a difference is printed as a factor: ten times as much."""
LEAST = 0.01
"""A smaller difference, in per cent, is printed as a number."""
DIGITS_CUT_OFF = ", its digits cut off and not rounded"


def search(
    model: str,
    wanted: PrintedFigure,
    sources: Sequence[Source],
    conventions: Mapping[str, Convention] = BUILT_IN,
    notes: Sequence[str] = (),
) -> Decoded:
    """Look the figure up among all candidates.

    A figure of few digits agrees with much by chance. With three digits it is compared only with readings that are at most
    one step from a total, with fewer only with totals. The multiply-adds of the work come before every counter, and they alone
    are cut off to it, if it has two digits or more and nothing rounds to it.

    Of readings of one rank that are the same number, one that a counter printed comes before arithmetic.
    """
    table, left_out = candidates(sources, conventions)
    table = select_comparable(table, wanted)
    matches, cut = find_agreeing(table, wanted)
    target = wanted.value
    near = sorted((c for c in table if c not in matches), key=lambda c: (abs(c.value - target), c.rank))
    return Decoded(
        model=model,
        figure=wanted,
        matches=tuple(replace(c, what=c.what + DIGITS_CUT_OFF) for c in matches) if cut else matches,
        cut=cut,
        other_unit=bool(matches) and wanted.counts not in ("", matches[0].unit),
        near=tuple(near[:NEAR]),
        plain=tuple(c for c in table if c.plain),
        searched=len(table),
        environments=tuple(source.name for source in sources),
        left_out=left_out,
        notes=tuple(notes),
        chance=by_chance(table, wanted),
        distance=describe_nearest([c for c in table if c.rank < LAYER], wanted),
    )


def select_comparable(table: Sequence[Candidate], wanted: PrintedFigure) -> tuple[Candidate, ...]:
    """The candidates that a figure of this unit and this number of digits is compared with: parameters only with parameters."""
    limit = LAYER + 1 if not wanted.few else DERIVED if wanted.length == FEW else PART
    parameters = {PARAMETER: (True,), "": (True, False)}.get(wanted.counts, (False,))
    return tuple(c for c in table if c.rank < limit and (c.unit == PARAMETER) in parameters)


def find_agreeing(table: Sequence[Candidate], wanted: PrintedFigure) -> tuple[tuple[Candidate, ...], bool]:
    """Those of ``table`` that are the figure, the simplest first; and whether they have its digits only if the others are cut
    off."""
    target = wanted.value
    meant = [c for c in table if wanted.exact or not c.exact]
    found = [c for c in meant if wanted.holds(c.value)]
    cut = not found and not wanted.exact and wanted.length > 1
    if cut:
        found = [c for c in meant if wanted.cuts(c.value) and (c.plain or c.unit == PARAMETER or not wanted.few)]
    matches = [c for c in found if wanted.counts in ("", c.unit)] or found
    few = wanted.few
    matches.sort(
        key=lambda c: (not (few and c.plain), c.rank, not c.doubled, abs(c.value - target), c.value, not c.printed)
    )
    return tuple(matches), cut and bool(matches)


def describe_nearest(among: Sequence[Candidate], wanted: PrintedFigure) -> str:
    """In words, how far the nearest reading is, in the unit of the claim; and in the other one, if that is nearer."""
    if not among:
        return "no reading of the model can be compared with it"
    target = wanted.value
    ranked = sorted(among, key=lambda c: (_factor(target, c.value), c.rank))
    mine = [c for c in ranked if c.unit == wanted.counts] or ranked
    unit = f" in {mine[0].unit}s" if wanted.counts and mine is not ranked else ""
    share = f"the nearest of {len(mine)} readings" if len(mine) > 1 else "the only reading"
    text = f"{describe_distance(target, mine[0])}, {share}{unit}"
    if mine[0].unit != ranked[0].unit and ranked[0].unit:
        text += f"; read as {ranked[0].unit}s it is {describe_distance(target, ranked[0])}"
    return text


def _factor(target: int, value: int) -> float:
    """How many times the larger of two counts is the smaller one: a tiny one is not near because it differs little."""
    return max(target, value) / (min(target, value) or 0.1)


def describe_distance(target: int, near: Candidate) -> str:
    """``too small by 5.0 %: 3,857,973,248 (3.86 GMACs, ...)``."""
    off = 100 * abs(target - near.value) / near.value if near.value else math.inf
    size = f"{si(near.value, near.unit)}s, " if near.unit != PARAMETER else ""
    share = f"a factor of {target / near.value:,.0f}" if LARGE <= off < math.inf else ""
    share = (
        share or f"{off:,.0f} %" if off >= 10 else f"{off:.2g} %" if off >= LEAST else f"{abs(target - near.value):,}"
    )
    return f"too {'small' if target < near.value else 'large'} by {share}: {near.value:,} ({size}{near.what})"


def find_release_bounds(candidate: Candidate, sources: Sequence[Source]) -> tuple[str, str, str]:
    """The package, and the releases nearest to those that give this reading, before and after them, that give another number.

    An end is '' if no release was looked at there. Only data with the same parameters is compared. ('', '', '') if the reading is
    of no counter whose package is known, or if releases that give it lie on both sides of one that does not.
    """
    known = known_counters().get(candidate.counter)
    key = known.versions_key if known is not None else ""
    giving = [source for source in sources if _gives(candidate, source)]
    params = [source.collected.meta["params"] for source in giving]
    gives, others = set[Version](), set[Version]()
    for source in sources:
        if source.collected.meta["params"] in params:
            (gives if source in giving else others).update(_versions(source, candidate.counter, key))
    others -= gives
    if not gives or not others or any(min(gives) < version < max(gives) for version in others):
        return "", "", ""
    before = max((version for version in others if version < min(gives)), default=None)
    after = min((version for version in others if version > max(gives)), default=None)
    return key, str(before or ""), str(after or "")


def describe_releases(package: str, before: str, after: str) -> str:
    """``Of the releases of thop looked at, only those before 0.0.31.post2005241907 give it.``; '' without bounds."""
    if not before and not after:
        return ""
    if before and after:
        return f"Of the releases of {package} looked at, only those between {before} and {after} give it."
    side, other = ("after", before) if before else ("before", after)
    return f"Of the releases of {package} looked at, only those {side} {other} give it."


def _gives(candidate: Candidate, source: Source) -> bool:
    found = candidates([source])[0]
    return any((c.value, c.what, c.counter) == (candidate.value, candidate.what, candidate.counter) for c in found)


def _versions(source: Source, counter: str, key: str) -> Iterator[Version]:
    for ledger in source.collected.ledgers:
        if isinstance(ledger, Ledger) and ledger.counter == counter and key in ledger.versions:
            with suppress(InvalidVersion):
                yield Version(ledger.versions[key])
