"""Runs a model's counters in another environment (--environment, --with, --python; ``reconcile matrix``, sweeps and audits).

A framework that is too old for its tracer gets the trace that the current environment takes of the same model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ...core.errors import UsageError
from ...core.records import Ledger, Trace
from ...core.registry import frameworks, known_counters, list_default_counters, title
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ..request import Point, RunRequest
from ..runner import CollectAt, collect, collect_at
from ..workers.supervisor import Event
from .definitions import CURRENT, Environment
from .interpreters import EnvironmentError_, running_version
from .provision import ensure


def collect_in(
    env: Environment, say: Callable[[str], None] = lambda _message: None
) -> Callable[[RunRequest, Callable[[Event], None]], Collected]:
    """A function that collects in that environment, which is made at the first call; ``say`` gets a sentence for slow steps.

    The function raises UsageError if the environment cannot be made, and whenever the runner does.
    """

    def take(request: RunRequest, progress: Callable[[Event], None]) -> Collected:
        collected = collect(_there(request, env, say), progress)
        return _borrow_traces([collected], env, request, lambda untraced: [collect_to_lend(request, untraced)])[0]

    return take


def collect_at_in(env: Environment, say: Callable[[str], None] = lambda _message: None) -> CollectAt:
    """As ``collect_in``, for a model at several points, each with the current environment's trace of it if it has none."""

    def take(
        request: RunRequest, points: Sequence[Point], progress: Callable[[Event], None], counting: bool
    ) -> list[Collected]:
        collected = collect_at(_there(request, env, say), points, progress, counting)
        return _borrow_traces(
            collected,
            env,
            request,
            lambda untraced: collect_at(
                _request_traces(request, untraced), points, lambda _event: None, counting=False
            ),
        )

    return take


def _there(request: RunRequest, env: Environment, say: Callable[[str], None]) -> RunRequest:
    """The request for that environment, which is made now if it is missing. Raises UsageError if it cannot be used."""
    absent = [name for name in request.factories if name not in env.frameworks]
    if absent:
        raise UsageError(f"the environment {env.name} has no {title(absent[0])}, which the model needs.")
    python = make_interpreter(env, say)
    counters = request.counters or counters_of(env, request.factories)
    return replace(within(request, env, python), counters=counters)


def make_interpreter(env: Environment, say: Callable[[str], None]) -> Path:
    """The interpreter of that environment, which is made now if it is missing. Raises UsageError if it cannot be used."""
    try:
        return ensure(env, say)
    except EnvironmentError_ as error:
        raise UsageError(f"the environment {env.name} cannot be used: {error}") from error


def _borrow_traces(
    collected: Sequence[Collected],
    env: Environment,
    request: RunRequest,
    lend: Callable[[list[str]], Sequence[Collected]],
) -> list[Collected]:
    """Each with the current environment's trace where it has none of its own; ``lend`` takes the traces of these frameworks."""
    untraced = list(dict.fromkeys(name for at in collected for name in borrowers(at)))
    if not untraced or env.name == CURRENT:
        return list(collected)
    try:
        lent = lend(untraced)
    except UsageError as error:
        if not request.factories:
            raise
        return [_unlent(at, untraced, str(error)) for at in collected]
    return [borrow_trace(at, current)[0] for at, current in zip(collected, lent, strict=True)]


def within(request: RunRequest, env: Environment, python: Path) -> RunRequest:
    """The same request for that environment, whose interpreter is at ``python``."""
    if env.name == CURRENT:
        return replace(request, python="", python_version="", user_python=False)
    version = running_version() if env.python == CURRENT else env.python
    lends = not env.over  # what is over the running interpreter's packages finds its counters there
    own = env.interpreter is not None
    return replace(request, python=str(python), python_version=version if lends else "", user_python=own)


def counters_of(env: Environment, factories: Collection[str] = ()) -> tuple[str, ...]:
    """The counters of an environment: those that it lists, otherwise those of its frameworks that run by default.

    A recipe needs a pair file, so a user's own model is counted only by the other counters; and every model of several has a
    framework's default counters where the environment lists none for it.
    """
    known = known_counters()
    if not factories:
        return env.counters or tuple(name for name, c in known.items() if c.framework in env.frameworks and c.default)
    default = [
        name
        for name, c in known.items()
        if c.framework in env.frameworks and name in list_default_counters(c.framework)
    ]
    listed = [name for name in env.counters if not known_counters()[name].recipe]
    unlisted = set(factories) - {known_counters()[name].framework for name in listed}
    rest = [name for name in default if known_counters()[name].framework in unlisted]
    return tuple(name for name in (*listed, *rest) if known_counters()[name].framework in factories)


def borrowers(collected: Collected) -> list[str]:
    """The frameworks of a result with ledgers and no trace to compare them with, and whose versions lend each other traces."""
    counted = {ledger.framework for ledger in collected.ledgers if isinstance(ledger, Ledger)}
    untraced = [t.framework for t in collected.traces if isinstance(t, Missing) and t.framework in counted]
    return [name for name in untraced if frameworks()[name].lends]


def collect_to_lend(request: RunRequest, names: list[str]) -> Collected:
    """Collect traces of these frameworks in the current environment, to lend them to another one."""
    return collect(_request_traces(request, names))


def _request_traces(request: RunRequest, names: list[str]) -> RunRequest:
    """The request for the current environment's traces of these frameworks. A worker needs a counter, so each gets one."""
    first = {c.framework: name for name, c in reversed(known_counters().items()) if c.default}
    return replace(request, python="", counters=tuple(first[f] for f in names))


def _unlent(collected: Collected, untraced: Sequence[str], why: str) -> Collected:
    """Adds to each missing trace the reason why the current environment could not lend its own."""
    traces = tuple(
        replace(t, reason=f"{_without_paths(t.reason)}; and the {CURRENT} environment could not lend its trace: {why}")
        if isinstance(t, Missing) and t.framework in untraced
        else t
        for t in collected.traces
    )
    return replace(collected, traces=traces)


def _without_paths(reason: str) -> str:
    """The reason without the paths of packages, which mean nothing to others."""
    return re.sub(r" \(/[^)]*\)", "", reason)


def borrow_trace(collected: Collected, lender: Collected | None) -> tuple[Collected, str]:
    """For a framework that is too old for its tracer, add the current environment's trace of the same pair.

    Only if a counter ran: for a model that could not be built there, there is no ledger to compare with a trace. The second
    value is the note about the borrowed trace, '' without one.
    """
    if lender is None or lender is collected:
        return collected, ""
    lent = {t.framework: t for t in lender.traces if isinstance(t, Trace)}
    untraced = borrowers(collected)
    traces: list[Trace | Missing] = []
    borrowed = ""
    for trace in collected.traces:
        if isinstance(trace, Missing) and trace.framework in lent and trace.framework in untraced:
            borrowed = f"borrows the {CURRENT} environment's trace: {_without_paths(trace.reason)}"
            traces.append(lent[trace.framework]._replace(notes=(borrowed,)))
        else:
            traces.append(trace)
    return replace(collected, traces=tuple(traces)), borrowed
