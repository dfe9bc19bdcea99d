"""One model in several environments: every counter's total in each, and why neighbouring totals differ, to residual 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..align.alignment import Alignment
from ..core.causes import State
from ..core.conventions import Convention, Conventions
from ..core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, UsageError
from ..core.records import Ledger, Trace
from ..core.registry import known_counters
from ..core.results import Statement
from ..engine.answer import Answer
from ..engine.reconcile import End, reconcile_runs
from ..engine.settle import Collected, settle
from ..launch.choose import prepare_conventions
from ..launch.environments import cache
from ..launch.environments.definitions import CURRENT, Environment
from ..launch.environments.interpreters import EnvironmentError_
from ..launch.environments.provision import ensure
from ..launch.environments.runs import (
    borrow_trace,
    borrowers,
    collect_to_lend,
    counters_of,
    within,
)
from ..launch.request import RunRequest
from ..launch.runner import collect
from ..launch.workers.supervisor import Event, abandon

WORKERS = 2
"""Environments that run at the same time: each has one or two processes of its own."""


@dataclass(frozen=True, slots=True)
class EnvironmentResult:
    """The reconciled run in one environment, or the reason why there is none. ``borrowed`` is a note on a lent trace or ''."""

    environment: Environment
    state: State
    reason: str
    result: Answer | None
    borrowed: str = ""


@dataclass(frozen=True, slots=True)
class MatrixResult:
    """The results of all environments in their order, and the statements between neighbours of the same family of counters."""

    model: str
    convention: Convention
    cells: tuple[EnvironmentResult, ...]
    neighbours: tuple[Statement, ...]
    exit_code: int


def run_matrix(
    request: RunRequest,
    environments: Sequence[Environment],
    progress: Callable[[str, Event], None] = lambda _name, _event: None,
    say: Callable[[str], None] = lambda _message: None,
) -> MatrixResult:
    """Run the model of ``request`` in every environment, two at a time, and reconcile each and its neighbours.

    If an environment cannot be made, or its interpreter is missing, only its own result is a failure. Raises UsageError for a
    pair or parameter that no environment could use, and for convention and formula files as the runner does.
    """
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        futures = [pool.submit(_collect, request, env, progress, say) for env in environments]
        try:
            outcomes = [future.result() for future in futures]
        except BaseException:
            abandon(pool, futures)
            raise
    current = next((c for env, c in zip(environments, outcomes, strict=True) if env.name == CURRENT), None)
    lender = current if isinstance(current, Collected) else _lender(request, outcomes)
    with prepare_conventions(request) as conventions:
        return _settle_environments(environments, outcomes, lender, conventions)


def _lender(request: RunRequest, outcomes: Sequence[Collected | str]) -> Collected | None:
    """The current environment's traces, if it is not in the matrix and other environments are too old for a tracer."""
    untraced = dict.fromkeys(framework for c in outcomes if isinstance(c, Collected) for framework in borrowers(c))
    return collect_to_lend(request, list(untraced)) if untraced else None


def _settle_environments(
    environments: Sequence[Environment],
    outcomes: Sequence[Collected | str],
    lender: Collected | None,
    conventions: Conventions,
) -> MatrixResult:
    cells, takes = [], []
    for environment, collected in zip(environments, outcomes, strict=True):
        if isinstance(collected, str):
            cells.append(EnvironmentResult(environment, State.FAILED, collected, None))
            continue
        traced, borrowed = borrow_trace(collected, lender)
        result = settle(traced, conventions)
        state = State.FAILED if result.exit_code == EXIT_FAILED else State.EXPLAINED
        state = State.UNEXPLAINED if result.exit_code == EXIT_UNEXPLAINED else state
        cells.append(EnvironmentResult(environment, state, _reason(result), result, borrowed))
        takes.append((environment, traced))
    if not takes:
        raise UsageError(
            "no environment could be used: " + "; ".join(f"{c.environment.name}: {c.reason}" for c in cells)
        )
    neighbours = _neighbours(takes, conventions.chosen)
    model = next(c.result.model for c in cells if c.result is not None)
    return MatrixResult(model, conventions.chosen, tuple(cells), neighbours, _exit_code(cells, neighbours))


def _collect(
    request: RunRequest, env: Environment, progress: Callable[[str, Event], None], say: Callable[[str], None]
) -> Collected | str:
    """The result of the workers of one environment, or one sentence on why there is none."""
    if request.factories:
        request = _of_frameworks(request, env.frameworks)
        if not request.factories:
            return f"the environment {env.name} has no framework of this model"
    counters = counters_of(env, request.factories)
    path = cache.path_of(replace(request, counters=counters), env)
    cached = cache.find(path)
    if cached is not None:
        say(f"{env.name}: using the cached result of this tool, model and packages")
        return cached
    try:
        python = ensure(env, say)
    except EnvironmentError_ as error:
        return str(error)
    inside = replace(within(request, env, python), counters=counters)
    try:
        collected = collect(inside, lambda event: progress(env.name, event))
    except UsageError as error:  # a pair file that this Python cannot read fails only in this environment
        return str(error)
    cache.keep(path, collected)
    return collected


def _of_frameworks(request: RunRequest, frameworks: Collection[str]) -> RunRequest:
    """The request with those of the user's own models that are of these frameworks."""
    factories = {name: made for name, made in request.factories.items() if name in frameworks}
    files = {name: file for name, file in request.files.items() if name in factories}
    return replace(request, factories=factories, files=files)


def _reason(result: Answer) -> str:
    missing = [f"{x.counter}: {x.reason}" for x in result.ledgers if x.reason]
    open_ = [f"{s.from_}: {s.reason}" for s in result.statements if s.state is State.UNEXPLAINED]
    return "; ".join((missing or open_)[:2])


def _neighbours(takes: Sequence[tuple[Environment, Collected]], convention: Convention) -> tuple[Statement, ...]:
    """Statements from each counter to the next one of the same family, in the order of the environments."""
    chains: dict[str, list[End]] = {}
    align = Alignment([])
    for environment, collected in takes:
        align = collected.declared_layers
        traces = {t.framework: t for t in collected.traces if isinstance(t, Trace)}
        for ledger in collected.ledgers:
            if isinstance(ledger, Ledger) and ledger.framework in traces:
                end = End(f"{environment.name}: {ledger.counter}", ledger, traces[ledger.framework])
                chains.setdefault(known_counters()[ledger.counter].family, []).append(end)
    return tuple(
        reconcile_runs(a, b, align, convention) for chain in chains.values() for a, b in itertools.pairwise(chain)
    )


def _exit_code(cells: Sequence[EnvironmentResult], neighbours: Sequence[Statement]) -> int:
    if any(s.state is State.UNEXPLAINED for s in neighbours) or any(c.state is State.UNEXPLAINED for c in cells):
        return EXIT_UNEXPLAINED
    return EXIT_FAILED if any(c.state is State.FAILED for c in cells) else EXIT_OK
