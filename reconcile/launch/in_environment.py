"""A take of a model in another environment, with the current one's trace where that is too old for a tracer."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ..adapters import COUNTERS
from ..core.errors import UsageError
from ..core.records import Ledger, Trace
from ..core.registry import title
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from .environments import CURRENT, Environment, EnvironmentError_, ensure
from .request import RunRequest
from .runner import collect
from .supervisor import Event


def collect_in(
    env: Environment, say: Callable[[str], None] = lambda _message: None
) -> Callable[[RunRequest, Callable[[Event], None]], Collected]:
    """How to collect in that environment, which is made when it is first needed; ``say`` is told what takes time.

    The function raises UsageError if the environment cannot be made, and as the runner does.
    """

    def take(request: RunRequest, progress: Callable[[Event], None]) -> Collected:
        elsewhere = [name for name in request.factories if name not in env.frameworks]
        if elsewhere:
            raise UsageError(f"the environment {env.name} has no {title(elsewhere[0])} to make the model with.")
        try:
            python = ensure(env, say)
        except EnvironmentError_ as error:
            raise UsageError(f"the environment {env.name} cannot be used: {error}") from error
        counters = request.counters or counters_of(env, request.factories)
        found = collect(replace(within(request, env, python), counters=counters), progress)
        lost = traceless(found)
        if not lost or env.name == CURRENT:
            return found
        try:
            lent = lender(request, lost)
        except UsageError as error:
            if not request.factories:
                raise
            return _unlent(found, lost, str(error))
        return with_trace(found, lent)[0]

    return take


def within(request: RunRequest, env: Environment, python: Path) -> RunRequest:
    """The same request for that environment, whose interpreter is at ``python``."""
    theirs = env.python if env.theirs is not None else ""
    return replace(request, python=str(python) if env.name != CURRENT else "", theirs=theirs)


def counters_of(env: Environment, factories: Collection[str] = ()) -> tuple[str, ...]:
    """The counters that an environment is for: its own list, else those of its frameworks that run unasked.

    A recipe takes a pair file: of a model of the user's own it is the others that are counted.
    """
    here = tuple(name for name, c in COUNTERS.items() if c.framework in env.frameworks and c.default)
    listed = tuple(name for name in env.counters if not (factories and COUNTERS[name].recipe)) or here
    return tuple(name for name in listed if COUNTERS[name].framework in factories) if factories else listed


def traceless(found: Collected) -> list[str]:
    """Frameworks that have ledgers there, but no trace to hold them against."""
    counted = {ledger.framework for ledger in found.ledgers if isinstance(ledger, Ledger)}
    return [t.framework for t in found.traces if isinstance(t, Missing) and t.framework in counted]


def lender(request: RunRequest, frameworks: list[str]) -> Collected:
    """The current environment's traces of these frameworks; a worker needs a counter, so one each goes along."""
    first = {c.framework: name for name, c in reversed(COUNTERS.items()) if c.default}
    return collect(replace(request, python="", counters=tuple(first[f] for f in frameworks)))


def _unlent(found: Collected, lost: Sequence[str], why: str) -> Collected:
    """Missing traces with the reason why the current environment could not lend its own."""
    traces = tuple(
        replace(t, reason=f"{_placeless(t.reason)}; nor could the {CURRENT} environment lend its trace: {why}")
        if isinstance(t, Missing) and t.framework in lost
        else t
        for t in found.traces
    )
    return replace(found, traces=traces)


def _placeless(reason: str) -> str:
    """Where a package lies is nobody's business."""
    return re.sub(r" \(/[^)]*\)", "", reason)


def with_trace(collected: Collected, lender: Collected | None) -> tuple[Collected, str]:
    """A framework too old for its tracer borrows the current environment's trace of the same pair.

    Only where a counter ran: a model that could not be built there has nothing to be held against.
    """
    if lender is None or lender is collected:
        return collected, ""
    whole = {t.framework: t for t in lender.traces if isinstance(t, Trace)}
    lost = traceless(collected)
    traces: list[Trace | Missing] = []
    borrowed = ""
    for trace in collected.traces:
        if isinstance(trace, Missing) and trace.framework in whole and trace.framework in lost:
            borrowed = f"borrows the {CURRENT} environment's trace: {_placeless(trace.reason)}"
            traces.append(whole[trace.framework]._replace(notes=(borrowed,)))
        else:
            traces.append(trace)
    return replace(collected, traces=tuple(traces)), borrowed
