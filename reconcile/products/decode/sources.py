"""Collects the ledgers and traces that decode searches: saved baselines, and runs here and in other environments.

``claims`` looks up in them the figures that a pair lists as published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, check_names
from ...core.registry import known_counters
from ...core.results import Claim
from ...drift import baselines
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...launch.choose import pair_path
from ...launch.environments.definitions import CURRENT, Environment
from ...launch.environments.definitions import load as load_environments
from ...launch.request import RunRequest, run_request
from ...launch.runner import Collect, CollectAt, collect, collect_at
from ...launch.user_models import name_of
from ...launch.workers.supervisor import Event
from ...model_zoo.loading import zoo_names
from .grammar import Source
from .printed_figure import figure
from .runs import choose_recipes, counter_of, name_lost, name_unbuilt, run_built, run_here, run_there
from .search import search

SHIPPED = Path(__file__).with_name("baselines")
"""The committed baselines, which are installed with the tool."""
SAVED = "saved"
"""The remark of saved data."""


def folders_of(model: str) -> tuple[Path, ...]:
    """Where the baselines of a model are by default. Those that are installed belong to the zoo's models."""
    return (baselines.FOLDER, SHIPPED) if model in zoo_names() else (baselines.FOLDER,)


def load_saved_sources(request: RunRequest, folders: Iterable[Path]) -> list[Source]:
    """All baselines of the model, named after their files, with the ledgers of the counters that the request names, or all.

    Of two with the same name, the first folder's is read.
    """
    paths: dict[str, Path] = {}
    for folder in folders if request.model else ():
        for path in baselines.baseline_path(folder, request.model).parent.glob("*.json"):
            paths.setdefault(path.stem, path)
    sources = []
    for stem, path in sorted(paths.items()):
        collected = baselines.load(path).collected
        if request.counters:
            ledgers = tuple(ledger for ledger in collected.ledgers if counter_of(ledger) in request.counters)
            collected = replace(collected, ledgers=ledgers)
        sources.append(
            Source(stem, collected, SAVED + _list_changed_params(collected.meta["params"], request.overrides))
        )
    return sources


def gather(
    request: RunRequest,
    folders: Iterable[Path],
    names: Sequence[str] = (),
    *,
    known: Mapping[str, Environment] | None = None,
    fresh: bool = True,
    thorough: bool = False,
    close: Callable[[Sequence[Source]], bool] = bool,
    progress: Callable[[Event], None] = lambda _event: None,
    say: Callable[[str], None] = lambda _message: None,
    take: Collect = collect,
    take_at: CollectAt = collect_at,
) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """Collect the data on a model, with notes on data that is missing. What costs least comes first, and as soon as the data
    comes ``close`` to the figure nothing else runs.

    Without ``names``: the saved baselines of all environments in the ``folders``, then what runs here: the traces, then every
    counter of ``--counter all``.  With ``names``: of these environments only, the saved data if there is any, else a run there;
    ``known`` are the environments that can be run.  If the model multiplies more than ``LITTLE``, its counters run only if
    ``thorough``; so do the other ways of building the model, one after another, whatever it multiplies.  ``fresh`` False: saved
    data only.  If the request names counters, only these run, and only their saved data is read; the work that ran is read in
    any case.
    Raises UsageError for unknown models, environments and counters, for damaged baselines, and if there is no data at all.
    """
    if request.model:
        pair_path(request.model)
    check_names("counter", request.counters, known_counters())
    known = load_environments() if known is None else known
    kept = load_saved_sources(request, folders)
    stems = {_stem(source) for source in kept}
    check_names("environment", names, {*known, *stems})
    lacking = {_stem(source) for source in kept if request.counters and not source.collected.ledgers}
    unread = [n for n in names or (CURRENT,) if n == CURRENT or n not in stems or (n in lacking and n in known)]
    read = [source for source in kept if not names or _stem(source) in names]
    same = [source for source in read if source.remark == SAVED]
    places = [known[n] for n in unread] if fresh and not (same and not lacking and close(same)) else []
    notes: list[str] = []
    runs = []
    for place in places:
        run = None
        if place.name == CURRENT and not request.counters:
            run = run_here(request, read, thorough, close, notes, progress, take, take_at)
        run = run or run_there(request, place, notes, progress, say, take)
        runs += [run] if run is not None else []
    sources = [source for source, _ in runs]
    ran = [(s.name, s.collected.meta["params"], baselines.versions(s.collected)) for s in sources]
    for source in read:
        if (_stem(source), source.collected.meta["params"], baselines.versions(source.collected)) not in ran:
            sources.append(source)
    for source, asked in runs:
        failed: list[Missing] = []
        others = [] if close(sources) else choose_recipes(request, source.collected)
        if others and not thorough:
            notes.append(f"{source.name}: {', '.join(others)}: each builds the model in another way: add --thorough.")
        for counter in others if thorough else ():
            if close(sources):
                break
            sources += run_built(replace(asked, counters=(counter,)), source.name, failed, progress, take)
        notes += name_lost(failed, source.name)
    if not close(sources):
        notes += name_unbuilt(request, sources)
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
        check_names("parameter", request.overrides, {x for s in sources for x in s.collected.meta["params"]})
    return tuple(sources), tuple(notes)


def claims(model: str, collected: Collected, folders: Iterable[Path]) -> tuple[Claim, ...]:
    """The figures that the pair lists as published, each looked up in this run and in the model's saved baselines."""
    sources = [Source(CURRENT, collected), *load_saved_sources(run_request(model=model), folders)]
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


def _list_changed_params(params: Mapping[str, Any], overrides: Mapping[str, str]) -> str:
    """The parameters of saved data that differ from the requested ones."""
    other = [f"{k}={params.get(k)}" for k, v in overrides.items() if str(params.get(k)).lower() != v.lower()]
    return f" with {', '.join(other)}" if other else ""
