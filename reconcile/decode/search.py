"""Decode: what a number that somebody published is for a model, out of the closed list of grammar.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..adapters import COUNTERS
from ..core.conventions import BUILT_IN, Convention
from ..core.errors import EXIT_OK, EXIT_UNEXPLAINED, UsageError, short, unknown
from ..core.records import Ledger
from ..core.results import Claim
from ..drift import baselines
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from ..launch.environments import CURRENT
from ..launch.environments import load as load_environments
from ..launch.interpreters import EnvironmentError_
from ..launch.provision import ensure
from ..launch.request import RunRequest, run_request
from ..launch.runner import collect, pair_file
from ..launch.supervisor import Event
from .grammar import Candidate, Source, candidates

SESSION = "tf.profiler@session"
"""A published recipe that is tried where no saved data has it; the present Keras no longer builds into its graph."""

Collect = Callable[[RunRequest, Callable[[Event], None]], Collected]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as printed: ``digits`` × ``unit``. An exact one has no unit but 1 and is this very number."""

    text: str
    digits: int
    unit: int

    @property
    def exact(self) -> bool:
        """Whether every digit is given."""
        return self.unit == 1

    def holds(self, value: int) -> bool:
        """Whether ``value`` rounds to these digits; a value half way between two rounds to both."""
        return 2 * abs(value - self.digits * self.unit) <= self.unit if not self.exact else value == self.digits

    def cuts(self, value: int) -> bool:
        """Whether ``value`` has these digits where the others are cut off."""
        return self.digits * self.unit <= value < (self.digits + 1) * self.unit


_SUFFIX = {"": 0, "k": 3, "m": 6, "g": 9, "b": 9, "t": 12, "p": 15}
_FIGURE = re.compile(
    r"(?P<whole>\d+|\d{1,3}(?:(?P<gap>[,_' ])\d{3})(?:(?P=gap)\d{3})*)(?:\.(?P<part>\d+))?"
    r"(?:[eE]\+?(?P<power>\d{1,2}))?\s*(?P<suffix>[kKmMgGbBtTpP]?)(?:flops?|macs?)?",
    re.IGNORECASE,
)


def figure(text: str) -> Figure:
    """Read a number as people print it. Raises UsageError for anything else, and for fractions of an operation."""
    found = _FIGURE.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None:
        raise UsageError(f"{short(text)} is no number. Write it as 25150826, 25,150,826, 3.86e9, 4.1G or 585M.")
    digits = int(re.sub(r"\D", "", found["whole"]) + (found["part"] or ""))
    power = int(found["power"] or 0) + _SUFFIX[found["suffix"].lower()] - len(found["part"] or "")
    while power < 0 and digits % 10 == 0:
        digits, power = digits // 10, power + 1
        if digits == 0:
            power = 0
    if power < 0:
        raise UsageError(f"{text} is no whole number, and a count is one. Leave out the digits behind the point.")
    return Figure(text.strip(), digits, 10**power)


@dataclass(frozen=True, slots=True)
class Decoded:
    """``matches`` by rank; ``cut``: none rounds to the figure, these have its digits when the others are cut off.

    ``near`` are the candidates on either side, nearest first; ``searched`` is how many there are.
    """

    model: str
    figure: Figure
    matches: tuple[Candidate, ...]
    cut: bool
    near: tuple[Candidate, ...]
    searched: int
    environments: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The distinct numbers that match, the best explained first."""
        return tuple(dict.fromkeys(c.value for c in self.matches))

    @property
    def ambiguous(self) -> bool:
        """Whether the digits do not say which number is meant."""
        return len(self.values) > 1

    @property
    def exit_code(self) -> int:
        """0 explained, ambiguous or not; 1 not explained."""
        return EXIT_OK if self.matches else EXIT_UNEXPLAINED


NEAR = 10
LONGEST = 100
"""Characters of a number; its power of ten has two digits."""


def search(
    model: str,
    wanted: Figure,
    sources: Sequence[Source],
    conventions: Mapping[str, Convention] = BUILT_IN,
    notes: Sequence[str] = (),
) -> Decoded:
    """Look the figure up among all candidates."""
    table, more = candidates(sources, conventions)
    target = wanted.digits * wanted.unit
    meant = [c for c in table if wanted.exact or not c.exact]
    matches = [c for c in meant if wanted.holds(c.value)]
    cut = not matches and not wanted.exact
    if cut:
        matches = [c for c in meant if wanted.cuts(c.value)]
    matches.sort(key=lambda c: (c.rank, abs(c.value - target), c.value))
    near = sorted((c for c in table if c not in matches), key=lambda c: (abs(c.value - target), c.rank))
    names = tuple(source.name for source in sources)
    said = (*notes, *more)
    return Decoded(model, wanted, tuple(matches), cut and bool(matches), tuple(near[:NEAR]), len(table), names, said)


def gather(
    request: RunRequest,
    folder: Path,
    names: Sequence[str] = (),
    *,
    fresh: bool = True,
    progress: Callable[[Event], None] = lambda _event: None,
    say: Callable[[str], None] = lambda _message: None,
    take: Collect = collect,
) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """The data there is on a model, and what there is to say of it.

    Without ``names``: a fresh run here, and the saved baselines of all environments in ``folder``.  With: of these
    environments only, the saved data where there is some, else a run there.  ``fresh`` False: saved data alone.
    Raises UsageError for unknown models and environments, damaged baselines, and where there is nothing at all.
    """
    pair_file(request.model)
    kept = saved(request, folder)
    notes: list[str] = []
    sources: list[Source] = []
    known = load_environments()
    for name in names:
        if name not in known and name not in map(_stem, kept):
            raise unknown("environment", name, {*known, *map(_stem, kept)})
    if fresh:
        for name in names or (CURRENT,):
            if name == CURRENT or name not in map(_stem, kept):
                sources += _run(request, name, not _has(kept, SESSION), notes, progress, say, take)
    ran = [(s.name, s.found.meta["params"], baselines.versions(s.found)) for s in sources]
    for source in kept:
        again = (_stem(source), source.found.meta["params"], baselines.versions(source.found)) in ran
        if not again and (not names or _stem(source) in names):
            sources.append(source)
    if not any(isinstance(r, Ledger) for s in sources for r in s.found.ledgers):
        why = f" ({notes[0]})" if notes else ""
        raise UsageError(
            f"there is no data on {request.model}: no counter ran{why}, and no baseline of it lies in {folder}."
        )
    return tuple(sources), tuple(notes)


def _stem(source: Source) -> str:
    """The environment that a saved baseline is of; those of older versions are kept as ``name@versions``."""
    return source.name.partition("@")[0]


def claims(model: str, found: Collected, folder: Path) -> tuple[Claim, ...]:
    """What the pair lists as published, each looked up in this run and in the saved baselines of the model."""
    sources = [Source("current", found), *saved(run_request(model=model), folder)]
    told = []
    for text, claim, where in found.meta["published"]:
        matches = search(model, figure(text), sources).matches
        first = matches[0] if matches else None
        said = " ".join(part for part in (f"{first.what}:", f"{first.how}.", first.note) if part) if first else ""
        told.append(Claim(text, claim, where, said, first.value if first else None))
    return tuple(told)


def saved(request: RunRequest, folder: Path) -> list[Source]:
    """Every baseline of the model, by the name of its file."""
    found = []
    for path in sorted(baselines.file_of(folder, request.model).parent.glob("*.json")):
        data = baselines.load(path).found
        found.append(Source(path.stem, data, "saved" + _changed(data.meta["params"], request.overrides)))
    return found


def _changed(params: Mapping[str, Any], overrides: Mapping[str, str]) -> str:
    """Parameters in which saved data is not what was asked for."""
    other = [f"{k}={params.get(k)}" for k, v in overrides.items() if str(params.get(k)).lower() != v.lower()]
    return f" with {', '.join(other)}" if other else ""


def _has(kept: Sequence[Source], counter: str) -> bool:
    return any(isinstance(r, Ledger) and r.counter == counter for s in kept for r in s.found.ledgers)


def _run(
    request: RunRequest,
    name: str,
    recipe: bool,
    notes: list[str],
    progress: Callable[[Event], None],
    say: Callable[[str], None],
    take: Collect,
) -> list[Source]:
    """A fresh run in one environment; here, a second one of the session recipe where ``recipe`` asks for it."""
    environment = load_environments()[name]
    try:
        python = str(ensure(environment, say)) if name != CURRENT else ""
    except EnvironmentError_ as error:
        notes.append(f"{name}: {error}.")
        return []
    found = take(replace(request, counters=environment.counters, python=python), progress)
    lost = [r for r in (*found.traces, *found.ledgers) if isinstance(r, Missing)]
    notes += [f"{name}: {m.name} ({m.framework}): {m.reason}." for m in lost]
    sources = [Source(name, found)]
    asked_of = COUNTERS[SESSION].framework
    there = asked_of in found.meta["frameworks"] and asked_of not in {missing.framework for missing in lost}
    if name == CURRENT and recipe and there:
        more = take(replace(request, counters=(SESSION,)), progress)
        if any(isinstance(r, Ledger) for r in more.ledgers):
            sources.append(Source(name, more))
        else:
            notes.append(f"{name}: {SESSION} cannot be asked here, the model does not build into a v1 graph.")
    return sources
