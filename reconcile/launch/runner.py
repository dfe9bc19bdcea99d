"""The runner: starts a worker per framework (and per counter with variables of its own), reads traces and ledgers from them.

``collect`` runs a model once; ``collect_at`` runs it at several sizes (points) in the same worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.causes import State
from ..core.counter import Counter
from ..core.errors import UsageError
from ..core.framework import Framework, relative
from ..core.protocol import TRACE, WorkerRequest, at_point
from ..core.records import Ledger, Trace
from ..core.registry import find_packages, frameworks, known_counters, title
from ..core.signals import reraise_signals
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from .choose import choose_counters, model_fields_by_framework
from .environments.interpreters import Interpreter
from .request import Point, RunRequest
from .workers import worker_files
from .workers.lend import lend
from .workers.scratch import pack, scratch
from .workers.supervisor import FORKS, Event, Supervisor
from .workers.worker_files import Outcome

Collect = Callable[[RunRequest, Callable[[Event], None]], Collected]
CollectAt = Callable[[RunRequest, Sequence[Point], Callable[[Event], None], bool], Sequence[Collected]]
"""Collects a model at several points; False collects its traces only."""


def collect(request: RunRequest, progress: Callable[[Event], None] = lambda _event: None) -> Collected:
    """Run a model once and read what its workers write. Raises UsageError for a request or a model that cannot be run."""
    counters = choose_counters(request)
    models = model_fields_by_framework(request)
    with reraise_signals(), scratch() as folder:
        meta, outcomes = start_workers(request, models, counters, folder, progress)
    traces, ledgers = read_records(meta, counters, outcomes, request)
    return Collected({**meta, "training": request.training, "context": request.context}, tuple(traces), tuple(ledgers))


def collect_at(
    request: RunRequest, points: Sequence[Point], progress: Callable[[Event], None], counting: bool
) -> list[Collected]:
    """Run a model at several points, in the same workers. Returns a result for each point. Raises UsageError as ``collect``."""
    counters = choose_counters(request)
    models = model_fields_by_framework(replace(request, overrides=points[0].overrides, inputs=points[0].inputs))
    with reraise_signals(), scratch() as folder:
        meta, outcomes = start_workers(request, models, counters, folder, progress, points, counting)
    collected = []
    for index, described in enumerate(worker_files.point_descriptions(meta, len(points))):
        at = {
            name: {task: done[at_point(task, index)] for task in (TRACE, *counters) if at_point(task, index) in done}
            for name, done in outcomes.items()
        }
        traces, ledgers = read_records(meta, counters if counting else (), at, request)
        there = {**meta, **described, "training": request.training, "context": request.context}
        collected.append(Collected(there, tuple(traces), tuple(ledgers)))
    return collected


def start_workers(
    request: RunRequest,
    models: Mapping[str, Mapping[str, Any]],
    counters: tuple[str, ...],
    folder: Path,
    progress: Callable[[Event], None],
    points: Sequence[Point] = (),
    counting: bool = True,
) -> tuple[dict[str, Any], dict[str, dict[str, Outcome]]]:
    """Run all workers side by side until they are done. Returns the pair's metadata and {framework: {task: outcome}}.
    Raises UsageError if no worker can use the model, and for counters of a framework that it has no side for."""
    supervisors = []
    tool = pack(folder)
    lent = str(lend(folder / "lent", request.python_version)) if request.python_version else ""
    python = Interpreter(Path(request.python), request.user_python) if request.python else Interpreter()
    for framework in frameworks().values():
        own_counters = [c for c in counters if known_counters()[c].framework == framework.name]
        counted = any(counter.framework == framework.name and counter.default for counter in known_counters().values())
        if not own_counters and (counted or framework.name not in request.factories):
            continue  # no counter of this framework was asked for
        seeing = [c for c in own_counters if not (request.training and known_counters()[c].blind)]
        for number, (variables, together) in enumerate(_groups(request, seeing if counting else [])):
            own = [c for c in seeing if c in together]
            body = worker_request(
                request,
                framework,
                own,
                tasks=tuple(at_point(task, index) for index in range(len(points) or 1) for task in together),
                lent=lent,
                brought=find_packages(
                    [(framework.adapter, framework.folder)]
                    + [(known_counters()[name].module, known_counters()[name].folder) for name in own]
                ),
                recipe=known_counters()[own_counters[0]].recipe if own_counters and not request.factories else "",
                lacking=describe_lacking(framework, request),
                points=tuple(
                    (dict(p.overrides), tuple((i.name, i.shape, i.dtype) for i in p.inputs), p.fused) for p in points
                ),
                **models[framework.name],
            )
            nursery = None if variables else next(filter(None, (find(body, python) for find in FORKS)), None)
            place = folder / (f"{framework.name}-{number}" if number else framework.name)
            supervisors.append(Supervisor(body, place, request.timeout, progress, tool, python, nursery, variables))
    outcomes: dict[str, dict[str, Outcome]] = {}
    with ThreadPoolExecutor(max_workers=len(supervisors)) as pool:
        try:
            futures = [pool.submit(s.run) for s in supervisors]
            for ended in wait(futures, return_when=FIRST_EXCEPTION).done:
                ended.result()
            for supervisor, future in zip(supervisors, futures, strict=True):
                outcomes.setdefault(supervisor.framework, {}).update(future.result())
        except BaseException:
            for supervisor in supervisors:
                supervisor.stop()
            raise
    metas = [s.meta for s in supervisors if s.meta is not None]
    if not metas:
        reason = next(outcome.reason for tasks in outcomes.values() for outcome in tasks.values())
        raise UsageError(f"the model could not be read in any worker: {reason.rstrip('.')}.")
    sides = list(dict.fromkeys(name for meta in metas for name in meta["frameworks"]))
    if request.counters and not any(known_counters()[name].framework in sides for name in counters):
        kinds = " or ".join(dict.fromkeys(title(known_counters()[name].framework) for name in counters))
        raise UsageError(
            f"{request.model} has no {kinds} model for {', '.join(counters)}: name a counter of {' or '.join(map(title, sides))}."
        )
    return {**metas[0], "frameworks": sides}, outcomes


def _groups(request: RunRequest, counters: Sequence[str]) -> list[tuple[dict[str, str], list[str]]]:
    """The tasks of each process of a framework, with its variables: the trace and most counters run in one, and a counter that
    needs variables before its framework is imported has one of its own."""
    alone = [c for c in counters if known_counters()[c].variables]
    together = [*([TRACE] if request.trace else []), *(c for c in counters if c not in alone)]
    groups: list[tuple[dict[str, str], list[str]]] = [({}, together)] if together or not alone else []
    return [*groups, *((dict(known_counters()[c].variables), [c]) for c in alone)]


def read_records(
    meta: Mapping[str, Any],
    counters: tuple[str, ...],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    request: RunRequest,
) -> tuple[list[Trace | Missing], list[Ledger | Missing]]:
    """Sort the outcomes of all tasks into traces and ledgers, with a ``Missing`` that says why in place of one that failed."""
    traces: list[Trace | Missing] = []
    for framework in meta["frameworks"]:
        outcome = outcomes.get(framework, {}).get(TRACE)
        if outcome is not None:
            record = outcome.record
            traces.append(record if isinstance(record, Trace) else _make_missing(TRACE, framework, outcome, request))
    ledgers: list[Ledger | Missing] = []
    for name in counters:
        framework = known_counters()[name].framework
        if request.training and known_counters()[name].blind:
            ledgers.append(make_unseeing(name))
        elif framework in meta["frameworks"]:
            outcome = outcomes[framework][name]
            record = outcome.record
            ledgers.append(record if isinstance(record, Ledger) else _make_missing(name, framework, outcome, request))
    return traces, ledgers


def make_unseeing(name: str) -> Missing:
    """The replacement for the ledger of a counter that cannot see a training step."""
    counter = known_counters()[name]
    return Missing(name, counter.framework, State.NOT_COMPARABLE, f"it {counter.blind}", counter.unit)


def counters_of_request(counters: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Each counter's capture module and the package that it imports, for the field of a worker's request."""
    return {name: (relative(known_counters()[name].module), known_counters()[name].package) for name in counters}


def worker_request(
    request: RunRequest, framework: Framework, counters: Sequence[str], tasks: tuple[str, ...], **fields: Any
) -> WorkerRequest:
    """Make the request to a worker, or to what works like one in this process, with these further fields."""
    return WorkerRequest(
        framework,
        tasks,
        out="",
        counters=counters_of_request(counters),
        known={record.name: record.package for record in frameworks().values()},
        device=request.device,
        training=request.training,
        standard=request.standard,
        context=request.context,
        quick=request.quick,
        **fields,
    )


def describe_lacking(framework: Framework, request: RunRequest) -> str:
    """The sentence for a framework that is not installed, with the remedy."""
    name = framework.title
    if request.user_python:
        return (
            f"{name} is not installed for {request.python}; install it there, or choose another Python with --python."
        )
    if request.python_version:
        wanted = framework.distributions or (framework.package,)
        return f"{name} is not installed in that environment; add {wanted[0]} to its requirements"
    if framework.newest_python and sys.version_info[:2] > framework.newest_python:
        newest, running = (".".join(map(str, version)) for version in (framework.newest_python, sys.version_info[:2]))
        return (
            f"{name} has no known release for Python {running}, only up to {newest}: name such a Python with --python"
        )
    package = f"'flop-reconcile[{framework.extra}]'" if framework.extra else framework.package
    first = next((counter for counter in known_counters().values() if counter.framework == framework.name), None)
    made = first is not None and any(each.startswith(f"{framework.package}==") for each in first.requirements)
    other = f", or add --environment {first.family}" if first and made else ""
    return f"{name} is not installed in this environment; install it with: pip install {package}{other}"


def absent(counter: Counter, where: str, device: str) -> Missing:
    """The replacement for the ledger of a counter that is not installed ``where`` it was to run, with the remedy."""
    remedy = f"add --environment {counter.family}" if counter.requirements else "install it there"
    reason = f"{counter.distribution} is not installed {where}; {remedy}, or leave it out with --counter."
    return Missing(counter.name, counter.framework, State.SKIPPED, reason, counter.unit, device, counter.distribution)


def _make_missing(name: str, framework: str, outcome: Outcome, request: RunRequest) -> Missing:
    unit, device = (known_counters()[name].unit, request.device) if name in known_counters() else ("", "")
    record = frameworks()[framework]
    if outcome.missing == record.package:
        return Missing(name, framework, State.SKIPPED, describe_lacking(record, request), unit, device)
    package = outcome.missing.partition(".")[0]
    if package and name in known_counters() and package == known_counters()[name].package:
        where = f"for {request.python}" if request.user_python else "in this environment"
        return absent(known_counters()[name], where, device)
    if package == record.package:
        reason = f"it needs {outcome.missing}, which the {record.title} of this environment does not have"
        return Missing(name, framework, State.SKIPPED, reason, unit, device)
    state = State.NOT_COMPARABLE if outcome.beyond else State.FAILED
    return Missing(name, framework, state, outcome.reason, unit, device)
