"""The single runs that sources.py makes for decode: here (traces, then counters if they are needed), in another environment, or
of a counter that builds the model in another way (a recipe). Each says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ...core.causes import State
from ...core.errors import UsageError
from ...core.number_format import number
from ...core.records import Ledger, Trace
from ...core.registry import every_counter, known_counters
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...launch.choose import choose_counters
from ...launch.environments.definitions import CURRENT, Environment
from ...launch.environments.interpreters import EnvironmentError_
from ...launch.environments.provision import ensure
from ...launch.environments.runs import counters_of, within
from ...launch.options import OPTIONS
from ...launch.request import Point, RunRequest
from ...launch.runner import Collect, CollectAt
from ...launch.user_models import READ_BACK
from ...launch.workers.supervisor import Event
from .grammar import Source, candidates

LITTLE = 10**10
"""Multiply-adds of a call, up to which ten counters that run the model take seconds."""


def run_there(
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
    notes += name_lost((*collected.traces, *collected.ledgers), place.name)
    return Source(place.name, collected), asked


def run_here(
    request: RunRequest,
    before: Sequence[Source],
    thorough: bool,
    close: Callable[[Sequence[Source]], bool],
    notes: list[str],
    progress: Callable[[Event], None],
    take: Collect,
    take_at: CollectAt,
) -> tuple[Source, RunRequest] | None:
    """What runs here: the traces, on meta where the framework has that, and then the counters, if the traces do not come close to
    the figure and the model is small enough. None if the model cannot be traced so: then it runs as it is asked to."""
    asked = replace(request, device="meta") if request.device == OPTIONS["device"].default else request
    try:
        (collected,) = take_at(asked, [Point(request.overrides, request.inputs)], progress, False)
    except UsageError:  # on meta, or of the model: the run as it is asked for tells
        return None
    traced = Source(CURRENT, collected)
    if not all(isinstance(trace, Trace) or trace.state is State.SKIPPED for trace in collected.traces):
        return None
    counted = replace(request, counters=_counters_to_run(request, collected), trace=False)
    macs = max((c.value for c in candidates([traced])[0] if c.plain), default=0)
    if close([*before, traced]):
        return traced, request
    if macs > LITTLE and not thorough:
        notes.append(
            f"{CURRENT}: {', '.join(counted.counters)}: all of them take minutes on a model of {number(macs)} multiply-adds: add "
            "--thorough."
        )
        return traced, request
    try:
        ledgers = take(counted, progress).ledgers
    except UsageError as error:  # the traces stand
        notes.append(f"{CURRENT}: {', '.join(counted.counters)}: {error}")
        return traced, request
    notes += name_lost((*collected.traces, *ledgers), CURRENT)
    return Source(CURRENT, replace(collected, ledgers=ledgers)), request


def _counters_to_run(request: RunRequest, collected: Collected) -> tuple[str, ...]:
    """The counters to run here: those that run unasked, and every other that takes the model as it is. What the libraries of a
    processor write is not a published figure."""
    sides = collected.meta["frameworks"]
    chosen = {
        *choose_counters(replace(request, counters=())),
        *(name for name in every_counter(sides) if "witness" not in known_counters()[name].leads),
        *(name for name, c in known_counters().items() if c.recipe == READ_BACK and request.factories),
    }
    return tuple(name for name, c in known_counters().items() if name in chosen and c.framework in sides)


def name_lost(records: Iterable[Missing | Trace | Ledger], name: str) -> list[str]:
    """A note for each reason why records are missing in that environment, with the names of all that it holds for."""
    names: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if isinstance(record, Missing):
            names.setdefault((record.framework, record.reason.rstrip(".")), []).append(record.name)
    return [f"{name}: {', '.join(lost)} ({framework}): {reason}." for (framework, reason), lost in names.items()]


def choose_recipes(request: RunRequest, collected: Collected) -> list[str]:
    """The recipes of the counters that run unasked, if they did not run. They build a pair, not a user's own model, and none is
    tried if the request names its counters."""
    if request.counters:
        return []
    records = (*collected.traces, *collected.ledgers)
    absent = {r.framework for r in records if isinstance(r, Missing) and r.state is State.SKIPPED}
    ran = set(map(counter_of, collected.ledgers))
    return [
        name
        for name in _recipes()
        if name not in ran
        and known_counters()[name].framework in {r.framework for r in records} - absent
        and not request.factories
    ]


def counter_of(ledger: Ledger | Missing) -> str:
    """The name of the counter of a ledger, or of what stands for a missing one."""
    return ledger.counter if isinstance(ledger, Ledger) else ledger.name


def _recipes() -> list[str]:
    """The counters that build the model in another way and whose family runs unasked."""
    unasked = {counter.family for counter in known_counters().values() if counter.default}
    return [name for name, counter in known_counters().items() if counter.recipe and counter.family in unasked]


def name_unbuilt(request: RunRequest, sources: Sequence[Source]) -> list[str]:
    """A note on the recipes, which build a pair, if the model is the user's own and may have been counted by one."""
    if request.counters:
        return []
    ran = {record.counter for s in sources for record in s.collected.ledgers if isinstance(record, Ledger)}
    recipes = [
        n
        for n in _recipes()
        if known_counters()[n].framework in request.factories
        and n not in ran
        and known_counters()[n].recipe != READ_BACK
    ]
    each = f"{', '.join(recipes)}: each builds the model in another way, which needs a pair: see `reconcile zoo new`."
    return [each] if recipes else []


def run_built(
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
