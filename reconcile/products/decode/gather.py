"""Collects what the candidates of grammar.py are made of: saved baselines, and runs here and in other environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.causes import State
from ...core.errors import UsageError, unknown
from ...core.records import Ledger, Trace
from ...core.registry import known_counters
from ...core.results import Claim
from ...drift import baselines
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...launch.choose import pair_file
from ...launch.environments.in_environment import counters_of, within
from ...launch.environments.interpreters import EnvironmentError_
from ...launch.environments.named import CURRENT, Environment
from ...launch.environments.named import load as load_environments
from ...launch.environments.provision import ensure
from ...launch.request import RunRequest, run_request
from ...launch.runner import Collect, collect
from ...launch.user_models import name_of
from ...launch.workers.supervisor import Event
from ...model_zoo.loading import zoo_names
from .figure import figure
from .grammar import Source
from .search import search

SHIPPED = Path(__file__).with_name("baselines")
"""The committed baselines, which are installed with the tool."""


def folders_of(model: str) -> tuple[Path, ...]:
    """Where the baselines of a model are by default. Those that are installed belong to the zoo's models."""
    return (baselines.FOLDER, SHIPPED) if model in zoo_names() else (baselines.FOLDER,)


def saved(request: RunRequest, folders: Iterable[Path]) -> list[Source]:
    """All baselines of the model, named after their files, with the ledgers of the counters that the request names, or all.

    Of two with the same name, the first folder's is read.
    """
    paths: dict[str, Path] = {}
    for folder in folders if request.model else ():
        for path in baselines.file_of(folder, request.model).parent.glob("*.json"):
            paths.setdefault(path.stem, path)
    sources = []
    for stem, path in sorted(paths.items()):
        collected = baselines.load(path).collected
        if request.counters:
            ledgers = tuple(ledger for ledger in collected.ledgers if _counter(ledger) in request.counters)
            collected = replace(collected, ledgers=ledgers)
        sources.append(Source(stem, collected, "saved" + _changed(collected.meta["params"], request.overrides)))
    return sources


def gather(
    request: RunRequest,
    folders: Iterable[Path],
    names: Sequence[str] = (),
    *,
    known: Mapping[str, Environment] | None = None,
    fresh: bool = True,
    close: Callable[[Sequence[Source]], bool] = bool,
    progress: Callable[[Event], None] = lambda _event: None,
    say: Callable[[str], None] = lambda _message: None,
    take: Collect = collect,
) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """Collect the data on a model, with notes on data that is missing.

    Without ``names``: a fresh run here, and the saved baselines of all environments in the ``folders``.  With ``names``: of
    these environments only, the saved data if there is any, else a run there; ``known`` are the environments that can be
    run.  Then every other way of building the model is run, one after another, until the data comes ``close`` to the
    figure.  ``fresh`` False: saved data only.  If the request names counters, only these run, and only their saved data is read;
    the work that ran is read in any case.
    Raises UsageError for unknown models, environments and counters, for damaged baselines, and if there is no data at all.
    """
    if request.model:
        pair_file(request.model)
    for counter in request.counters:
        if counter not in known_counters():
            raise unknown("counter", counter, known_counters())
    known = load_environments() if known is None else known
    kept = saved(request, folders)
    stems = {_stem(source) for source in kept}
    for name in names:
        if name not in known and name not in stems:
            raise unknown("environment", name, {*known, *stems})
    lacking = {_stem(source) for source in kept if request.counters and not source.collected.ledgers}
    unread = [n for n in names or (CURRENT,) if n == CURRENT or n not in stems or (n in lacking and n in known)]
    places = [known[n] for n in unread] if fresh else []
    notes: list[str] = []
    runs = [run for place in places if (run := _run(request, place, notes, progress, say, take)) is not None]
    sources = [source for source, _ in runs]
    ran = [(s.name, s.collected.meta["params"], baselines.versions(s.collected)) for s in sources]
    for source in kept:
        again = (_stem(source), source.collected.meta["params"], baselines.versions(source.collected)) in ran
        if not again and (not names or _stem(source) in names):
            sources.append(source)
    for source, asked in runs:
        failed: list[Missing] = []
        for counter in _others(request, source.collected):
            if close(sources):
                break
            sources += _built(replace(asked, counters=(counter,)), source.name, failed, progress, take)
        notes += _lost(failed, source.name)
    if not close(sources):
        notes += _unbuilt(request, sources)
    records = [r for s in sources for r in (*s.collected.ledgers, *s.collected.traces)]
    if all(isinstance(record, Missing) for record in records):
        model = request.model or name_of(request.factories)
        why = f" ({notes[0]})" if notes else ""
        where = " or ".join(map(str, folders)) if request.model else ""
        raise UsageError(
            f"there is no data on {model}: nothing ran{why}"
            + (f", and {where} holds no baseline of it." if where else ".")
        )
    if not runs:  # otherwise the run has checked them
        parameters = {name for source in sources for name in source.collected.meta["params"]}
        for name in request.overrides:
            if name not in parameters:
                raise unknown("parameter", name, parameters)
    return tuple(sources), tuple(notes)


def claims(model: str, collected: Collected, folders: Iterable[Path]) -> tuple[Claim, ...]:
    """The figures that the pair lists as published, each looked up in this run and in the model's saved baselines."""
    sources = [Source(CURRENT, collected), *saved(run_request(model=model), folders)]
    looked_up = []
    for text, claim, where in collected.meta["published"]:
        matches = search(model, figure(text), sources).matches
        first = matches[0] if matches else None
        sentence = " ".join(part for part in (f"{first.what}:", f"{first.how}.", first.note) if part) if first else ""
        looked_up.append(Claim(text, claim, where, sentence, first.value if first else None))
    return tuple(looked_up)


def _stem(source: Source) -> str:
    """The environment of a saved baseline; baselines of older versions are kept as ``name@versions``."""
    return source.name.partition("@")[0]


def _changed(params: Mapping[str, Any], overrides: Mapping[str, str]) -> str:
    """The parameters of saved data that differ from the requested ones."""
    other = [f"{k}={params.get(k)}" for k, v in overrides.items() if str(params.get(k)).lower() != v.lower()]
    return f" with {', '.join(other)}" if other else ""


def _run(
    request: RunRequest,
    place: Environment,
    notes: list[str],
    progress: Callable[[Event], None],
    say: Callable[[str], None],
    take: Collect,
) -> tuple[Source, RunRequest] | None:
    """A run of the counters of one environment, and the request for that environment; None, with a note, if it cannot be
    made."""
    asked = request
    if place.name != CURRENT:
        try:
            asked = within(request, place, ensure(place, say))
        except EnvironmentError_ as error:
            notes.append(f"{place.name}: {error}.")
            return None
        asked = replace(asked, counters=request.counters or counters_of(place, request.factories))
    collected = take(asked, progress)
    notes += _lost((*collected.traces, *collected.ledgers), place.name)
    return Source(place.name, collected), asked


def _lost(records: Iterable[Missing | Trace | Ledger], name: str) -> list[str]:
    """A note for each reason why records are missing in that environment, with the names of all that it holds for."""
    names: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if isinstance(record, Missing):
            names.setdefault((record.framework, record.reason.rstrip(".")), []).append(record.name)
    return [f"{name}: {', '.join(lost)} ({framework}): {reason}." for (framework, reason), lost in names.items()]


def _others(request: RunRequest, collected: Collected) -> list[str]:
    """The recipes of the counters that run unasked, if they did not run. They build a pair, not a user's own model, and none is
    tried if the request names its counters."""
    if request.counters:
        return []
    records = (*collected.traces, *collected.ledgers)
    absent = {r.framework for r in records if isinstance(r, Missing) and r.state is State.SKIPPED}
    ran = set(map(_counter, collected.ledgers))
    return [
        name
        for name in _recipes()
        if name not in ran
        and known_counters()[name].framework in {r.framework for r in collected.ledgers} - absent
        and not request.factories
    ]


def _counter(ledger: Ledger | Missing) -> str:
    return ledger.counter if isinstance(ledger, Ledger) else ledger.name


def _recipes() -> list[str]:
    """The counters that build the model in another way and whose family runs unasked."""
    unasked = {counter.family for counter in known_counters().values() if counter.default}
    return [name for name, counter in known_counters().items() if counter.recipe and counter.family in unasked]


def _unbuilt(request: RunRequest, sources: Sequence[Source]) -> list[str]:
    """A note on the recipes, which build a pair, if the model is the user's own and may have been counted by one."""
    if request.counters:
        return []
    ran = {record.counter for s in sources for record in s.collected.ledgers if isinstance(record, Ledger)}
    recipes = [n for n in _recipes() if known_counters()[n].framework in request.factories and n not in ran]
    each = f"{', '.join(recipes)}: each builds the model in another way, which needs a pair: see `reconcile zoo new`."
    return [each] if recipes else []


def _built(
    request: RunRequest, name: str, failed: list[Missing], progress: Callable[[Event], None], take: Collect
) -> list[Source]:
    """A run of one more counter, whose model may be built in another way. Nothing if that does not work, and ``failed`` gets
    the reason."""
    try:
        collected = take(request, progress)
    except UsageError as error:
        (counter,) = request.counters
        failed.append(Missing(counter, known_counters()[counter].framework, State.FAILED, str(error)))
        return []
    if any(isinstance(record, Ledger) for record in collected.ledgers):
        return [Source(name, collected)]
    failed += [record for record in collected.ledgers if isinstance(record, Missing)]
    return []
