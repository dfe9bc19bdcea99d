"""Makes the stale cards of the scorecard: one run per family, pass, environment and recipe, of all counters that need it.

A card is the result of one counter on one family in one pass. command.py keeps it in ``scorecard.json`` with what it depends
on: the family's files, the counter's folder, its version and that of its framework. It is stale if one of these has changed, if
it is missing, or if something was not installed. A counter that stops at the whole family is run on each of its layers alone.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from ...core.causes import State
from ...core.counter import Counter
from ...core.errors import UsageError
from ...core.registry import frameworks, known_counters
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...launch.environments.definitions import CURRENT, load
from ...launch.environments.interpreters import EnvironmentError_
from ...launch.environments.provision import ensure
from ...launch.environments.runs import collect_in
from ...launch.request import RunRequest, run_request
from ...launch.workers.scratch import scratch
from ...model_zoo import loading
from ..forked_workers import warm
from ..gallery.rows import at_once, source_of
from ..gallery.training import settings_of
from .cells import Card, Cell, Verdict, cells

Take = Callable[[str, RunRequest], Collected]
"""Runs a request in the environment of that name. Raises EnvironmentError_ if it cannot be made."""

ONE_LAYER = '''"""One layer of {family}."""

from reconcile.model_zoo.{family} import BRICKS
from reconcile.model_zoo.bricks.net import branches, pair

PAIR, inputs, build_tf, build_torch, copy_weights = pair(
    "{family}", branches([brick for brick in BRICKS if brick.name == "{layer}"])
)
'''
"""The pair of one layer of a family."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Counters that run together on one family in one pass, in one environment: their traces are shared."""

    family: str
    pass_: str
    environment: str
    counters: tuple[str, ...]

    @property
    def title(self) -> str:
        """``family_dense training``."""
        where = "" if self.environment == CURRENT else f" in {self.environment}"
        return self.family + (" training" if self.pass_ == "training" else "") + where


def stale(
    counters: Sequence[str], families: Sequence[str], passes: Sequence[str], kept: Mapping[str, Card]
) -> list[Batch]:
    """The batches whose cards are missing or no longer valid, or have no numbers because something was not installed."""
    batches: dict[tuple[str, str, str, str], list[str]] = {}
    for pass_ in passes:
        for family in families:
            for name in counters:
                counter = known_counters()[name]
                new = _card(family, pass_, counter, {}, {})
                old = kept.get(new.name)
                absent = old is not None and any(cell.verdict is Verdict.ABSENT for cell in old.cells.values())
                if old is None or old.key != new.key or absent:  # what was not installed may be now
                    batches.setdefault((family, pass_, environment_of(counter), counter.recipe), []).append(name)
    return [Batch(family, pass_, place, tuple(names)) for (family, pass_, place, _), names in batches.items()]


def make(
    batches: Sequence[Batch],
    jobs: int,
    each: Callable[[str, Sequence[Card]], None] = lambda title, cards: None,
    begun: Callable[[str], None] = lambda title: None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Card]:
    """Run these batches, ``jobs`` at a time; returns their cards by name. ``each`` gets the cards of a batch when it is done."""
    environments = load()

    def take(environment: str, request: RunRequest) -> Collected:
        place = environments[environment]
        ensure(place, say)
        return collect_in(place, say)(request, lambda _event: None)

    with warm():
        done = at_once(
            batches,
            jobs,
            lambda batch: list(measure(batch, take)),
            lambda batch, cards: each(batch.title, cards),
            lambda batch: begun(batch.title),
        )
    return {card.name: card for cards in done.values() for card in cards}


def measure(batch: Batch, take: Take) -> Iterator[Card]:
    """Run a batch: a card for each of its counters. One that stops at the family as a whole runs on each of its layers alone."""
    layers = layers_of(batch.family)
    try:
        yield from _measure_layers(batch, layers, take)
    except EnvironmentError_ as error:
        absent = dict.fromkeys(layers, Cell(Verdict.ABSENT, reason=f"its environment cannot be made: {error}"))
        for name in batch.counters:
            yield _card(batch.family, batch.pass_, known_counters()[name], absent, {})


def _measure_layers(batch: Batch, layers: Sequence[str], take: Take) -> Iterator[Card]:
    counters = [known_counters()[name] for name in batch.counters]
    seeing = [c for c in counters if not (batch.pass_ == "training" and c.blind)]
    collected: Collected | str = ""
    if seeing:
        collected = _take_result(batch, seeing, batch.family, take)
    stopped = [c for c in seeing if isinstance(collected, str) or _stops(collected, c.name)]
    alone = _alone(batch, stopped, layers, take)
    for counter in counters:
        if counter not in seeing:
            table = dict.fromkeys(layers, Cell(Verdict.BLIND, reason=f"it {counter.blind}"))
            yield _card(batch.family, batch.pass_, counter, table, {})
            continue
        if counter in stopped:
            yield _card(batch.family, batch.pass_, counter, *alone[counter.name])
            continue
        assert not isinstance(collected, str)
        yield _card(
            batch.family, batch.pass_, counter, cells(collected, counter.name, layers), _versions(collected, counter)
        )


def _take_result(batch: Batch, counters: Sequence[Counter], model: str, take: Take) -> Collected | str:
    """The result of a run, or one sentence if the model could not be run at all."""
    at, device = settings(batch.family, batch.pass_)
    request = run_request(
        model=model, overrides=at, device=device, pass_=batch.pass_, counters=[counter.name for counter in counters]
    )
    try:
        return take(batch.environment, request)
    except UsageError as error:
        return str(error)


def _stops(collected: Collected, counter: str) -> bool:
    """Whether the counter ran on this family, had no number, and may have one for some of its layers."""
    ledger = next((x for x in collected.ledgers if isinstance(x, Missing) and x.name == counter), None)
    return ledger is not None and ledger.state is not State.SKIPPED


def _alone(
    batch: Batch, counters: Sequence[Counter], layers: Sequence[str], take: Take
) -> dict[str, tuple[dict[str, Cell], Mapping[str, str]]]:
    """The cells and versions of these counters on each layer alone."""
    tables: dict[str, dict[str, Cell]] = {counter.name: {} for counter in counters}
    versions: dict[str, Mapping[str, str]] = {counter.name: {} for counter in counters}
    if not counters:
        return {}
    with scratch() as folder:
        for layer in layers:
            file = Path(folder, f"{layer}.py")
            file.write_text(ONE_LAYER.format(family=batch.family, layer=layer), encoding="utf-8")
            collected = _take_result(batch, counters, str(file), take)
            for counter in counters:
                if isinstance(collected, str):
                    tables[counter.name][layer] = Cell(Verdict.FAILS, reason=collected)
                    continue
                tables[counter.name].update(cells(collected, counter.name, (layer,)))
                versions[counter.name] = versions[counter.name] or _versions(collected, counter)
    return {name: (table, versions[name]) for name, table in tables.items()}


def layers_of(family: str) -> tuple[str, ...]:
    """The layers of a family, in its order."""
    return tuple(layer.name for layer in loading.load_pair(loading.pair_path(family)).layers)


@cache
def settings(family: str, pass_: str) -> tuple[dict[str, str], str]:
    """The settings of a family in a pass that differ from the pair's own, and the device on which it runs."""
    return settings_of(family) if pass_ == "training" else ({}, "cpu")


def environment_of(counter: Counter) -> str:
    """The environment in which the counter runs: one of its own if it cannot live beside the others."""
    return counter.family if counter.requirements else CURRENT


def _versions(collected: Collected, counter: Counter) -> Mapping[str, str]:
    return next((x.versions for x in collected.ledgers if not isinstance(x, Missing) and x.counter == counter.name), {})


def _card(family: str, pass_: str, counter: Counter, table: Mapping[str, Cell], versions: Mapping[str, str]) -> Card:
    at, device = settings(family, pass_)
    record = frameworks()[counter.framework]
    return Card(
        family=family,
        pass_=pass_,
        counter=counter.name,
        framework=counter.framework,
        unit=counter.unit,
        source=_source(family),
        code=code_of(counter.module),
        version=" ".join(counter.requirements) or installed_version((counter.distribution,)),
        framework_version=installed_version(record.distributions or (record.package,)),
        versions=dict(versions),
        settings=at,
        device=device,
        environment=environment_of(counter),
        cells=dict(table),
    )


_source = cache(source_of)


@cache
def code_of(module: str) -> str:
    """SHA-256 over the Python files of the folder that declares a counter."""
    folder = Path(str(importlib.import_module(module).__file__)).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@cache
def installed_version(distributions: Iterable[str]) -> str:
    """The version of the first of these distributions that is installed beside home; '' if none is."""
    for name in distributions:
        try:
            return metadata.version(name) if name else ""
        except metadata.PackageNotFoundError:
            continue
    return ""
