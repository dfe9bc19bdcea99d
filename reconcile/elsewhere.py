"""A take of a model in another environment, with the current one's trace where that is too old for a tracer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from .adapters import COUNTERS
from .engine import Missing
from .environments import CURRENT, Environment, EnvironmentError_, ensure
from .errors import UsageError
from .process import Event
from .records import Ledger, Trace
from .runner import Collected, RunRequest, collect


def collect_in(
    env: Environment, say: Callable[[str], None] = lambda _message: None
) -> Callable[[RunRequest, Callable[[Event], None]], Collected]:
    """How to collect in that environment, which is made when it is first needed; ``say`` is told what takes time.

    The function raises UsageError if the environment cannot be made, and as the runner does.
    """

    def take(request: RunRequest, progress: Callable[[Event], None]) -> Collected:
        try:
            python = str(ensure(env, say)) if env.name != CURRENT else ""
        except EnvironmentError_ as error:
            raise UsageError(f"the environment {env.name} cannot be used: {error}") from error
        found = collect(replace(request, python=python, counters=request.counters or counters_of(env)), progress)
        lost = traceless(found)
        if not lost or env.name == CURRENT:
            return found
        return with_trace(found, lender(request, lost))[0]

    return take


def counters_of(env: Environment) -> tuple[str, ...]:
    """The counters that an environment is for: its own list, else all of its frameworks but the recipes."""
    here = (name for name, c in COUNTERS.items() if c.framework in env.frameworks and not c.recipe)
    return env.counters or tuple(here)


def traceless(found: Collected) -> list[str]:
    """Frameworks that have ledgers there, but no trace to hold them against."""
    counted = {ledger.framework for ledger in found.ledgers if isinstance(ledger, Ledger)}
    return [t.framework for t in found.traces if isinstance(t, Missing) and t.framework in counted]


def lender(request: RunRequest, frameworks: list[str]) -> Collected:
    """The current environment's traces of these frameworks; a worker needs a counter, so one each goes along."""
    first = {c.framework: name for name, c in reversed(COUNTERS.items()) if not c.recipe}
    return collect(replace(request, python="", counters=tuple(first[f] for f in frameworks)))


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
            why = re.sub(r" \(/[^)]*\)", "", trace.reason)  # where a package lies is nobody's business
            borrowed = f"borrows the {CURRENT} environment's trace: {why}"
            traces.append(whole[trace.framework]._replace(notes=(borrowed,)))
        else:
            traces.append(trace)
    return replace(collected, traces=tuple(traces)), borrowed
