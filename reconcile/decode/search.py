"""Decode: find a published number for a model in the closed list of candidates of grammar.py."""

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
"""A published recipe that is tried if no saved data has it; current Keras no longer builds into its graph."""

Collect = Callable[[RunRequest, Callable[[Event], None]], Collected]


@dataclass(frozen=True, slots=True)
class PrintedFigure:
    """A number as printed: ``digits`` × ``unit``. An exact number has the unit 1."""

    text: str
    digits: int
    unit: int

    @property
    def exact(self) -> bool:
        """Whether every digit is given."""
        return self.unit == 1

    def holds(self, value: int) -> bool:
        """Whether ``value`` rounds to these digits; a value halfway between two figures rounds to both."""
        return 2 * abs(value - self.digits * self.unit) <= self.unit if not self.exact else value == self.digits

    def cuts(self, value: int) -> bool:
        """Whether ``value`` has these digits if the others are cut off."""
        return self.digits * self.unit <= value < (self.digits + 1) * self.unit


_SUFFIX = {"": 0, "k": 3, "m": 6, "g": 9, "b": 9, "t": 12, "p": 15}
_FIGURE = re.compile(
    r"(?P<whole>\d+|\d{1,3}(?:(?P<gap>[,_' ])\d{3})(?:(?P=gap)\d{3})*)(?:\.(?P<part>\d+))?"
    r"(?:[eE]\+?(?P<power>\d{1,2}))?\s*(?P<suffix>[kKmMgGbBtTpP]?)(?:flops?|macs?)?",
    re.IGNORECASE,
)


def figure(text: str) -> PrintedFigure:
    """Read a number as people print it. Raises UsageError for anything else, and for fractions of an operation."""
    parts = _FIGURE.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if parts is None:
        raise UsageError(f"{short(text)} is not a number. Write it as 25150826, 25,150,826, 3.86e9, 4.1G or 585M.")
    digits = int(re.sub(r"\D", "", parts["whole"]) + (parts["part"] or ""))
    power = int(parts["power"] or 0) + _SUFFIX[parts["suffix"].lower()] - len(parts["part"] or "")
    while power < 0 and digits % 10 == 0:
        digits, power = digits // 10, power + 1
        if digits == 0:
            power = 0
    if power < 0:
        raise UsageError(f"{text} is not a whole number, but a count is. Leave out the digits after the point.")
    return PrintedFigure(text.strip(), digits, 10**power)


@dataclass(frozen=True, slots=True)
class Decoded:
    """``matches`` by rank; ``cut``: no candidate rounds to the figure, but these have its digits if the others are cut off.

    ``near`` are the candidates on both sides, nearest first; ``searched`` is the number of candidates.
    """

    model: str
    figure: PrintedFigure
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
        """Whether several numbers have these digits."""
        return len(self.values) > 1

    @property
    def exit_code(self) -> int:
        """0 if the figure is explained, even if ambiguous; else 1."""
        return EXIT_OK if self.matches else EXIT_UNEXPLAINED


NEAR = 10
LONGEST = 100
"""Longest text that is read as a number, in characters; its power of ten has up to two digits."""


def search(
    model: str,
    wanted: PrintedFigure,
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
    all_notes = (*notes, *more)
    return Decoded(
        model, wanted, tuple(matches), cut and bool(matches), tuple(near[:NEAR]), len(table), names, all_notes
    )


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
    """Collect the data on a model, with notes on data that is missing.

    Without ``names``: a fresh run here, and the saved baselines of all environments in ``folder``.  With ``names``: of these
    environments only, the saved data if there is any, else a run there.  ``fresh`` False: saved data only.
    Raises UsageError for unknown models and environments, for damaged baselines, and if there is no data at all.
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
    ran = [(s.name, s.collected.meta["params"], baselines.versions(s.collected)) for s in sources]
    for source in kept:
        again = (_stem(source), source.collected.meta["params"], baselines.versions(source.collected)) in ran
        if not again and (not names or _stem(source) in names):
            sources.append(source)
    if not any(isinstance(r, Ledger) for s in sources for r in s.collected.ledgers):
        why = f" ({notes[0]})" if notes else ""
        raise UsageError(
            f"there is no data on {request.model}: no counter ran{why}, and {folder} holds no baseline of it."
        )
    return tuple(sources), tuple(notes)


def _stem(source: Source) -> str:
    """The environment of a saved baseline; baselines of older versions are kept as ``name@versions``."""
    return source.name.partition("@")[0]


def claims(model: str, collected: Collected, folder: Path) -> tuple[Claim, ...]:
    """The figures that the pair lists as published, each looked up in this run and in the model's saved baselines."""
    sources = [Source("current", collected), *saved(run_request(model=model), folder)]
    looked_up = []
    for text, claim, where in collected.meta["published"]:
        matches = search(model, figure(text), sources).matches
        first = matches[0] if matches else None
        sentence = " ".join(part for part in (f"{first.what}:", f"{first.how}.", first.note) if part) if first else ""
        looked_up.append(Claim(text, claim, where, sentence, first.value if first else None))
    return tuple(looked_up)


def saved(request: RunRequest, folder: Path) -> list[Source]:
    """All baselines of the model, named after their files."""
    sources = []
    for path in sorted(baselines.file_of(folder, request.model).parent.glob("*.json")):
        collected = baselines.load(path).collected
        sources.append(Source(path.stem, collected, "saved" + _changed(collected.meta["params"], request.overrides)))
    return sources


def _changed(params: Mapping[str, Any], overrides: Mapping[str, str]) -> str:
    """The parameters of saved data that differ from the requested ones."""
    other = [f"{k}={params.get(k)}" for k, v in overrides.items() if str(params.get(k)).lower() != v.lower()]
    return f" with {', '.join(other)}" if other else ""


def _has(kept: Sequence[Source], counter: str) -> bool:
    return any(isinstance(r, Ledger) and r.counter == counter for s in kept for r in s.collected.ledgers)


def _run(
    request: RunRequest,
    name: str,
    recipe: bool,
    notes: list[str],
    progress: Callable[[Event], None],
    say: Callable[[str], None],
    take: Collect,
) -> list[Source]:
    """A fresh run in one environment; in the current one also a run of the session recipe, if ``recipe`` asks for it."""
    environment = load_environments()[name]
    try:
        python = str(ensure(environment, say)) if name != CURRENT else ""
    except EnvironmentError_ as error:
        notes.append(f"{name}: {error}.")
        return []
    collected = take(replace(request, counters=environment.counters, python=python), progress)
    lost = [r for r in (*collected.traces, *collected.ledgers) if isinstance(r, Missing)]
    notes += [f"{name}: {m.name} ({m.framework}): {m.reason.rstrip('.')}." for m in lost]
    sources = [Source(name, collected)]
    asked_of = COUNTERS[SESSION].framework
    runnable = asked_of in collected.meta["frameworks"] and asked_of not in {missing.framework for missing in lost}
    if name == CURRENT and recipe and runnable:
        more = take(replace(request, counters=(SESSION,)), progress)
        if any(isinstance(r, Ledger) for r in more.ledgers):
            sources.append(Source(name, more))
        else:
            notes.append(f"{name}: {SESSION} cannot run here: the model does not build into a v1 graph.")
    return sources
