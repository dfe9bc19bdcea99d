"""Resolves --from and --to to the two ends of the statement that ``reconcile run`` and ``watch`` show, and checks the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.errors import unknown
from ..core.registry import frameworks

if TYPE_CHECKING:
    from ..core.results import Statement
    from ..engine.answer import Answer
    from ..launch.request import RunRequest


def ends(
    counters: Sequence[str], from_: str | None, to: str | None, models: Sequence[str] = ()
) -> tuple[str, str] | None:
    """Both ends of the statement asked for, None if neither was given. Raises UsageError for a name not in this run.

    ``counters`` are those of the run; ``models`` are the frameworks of the user's own models, and where there are none no
    counters mean all. An end that was not given is the default one, and where that is not in the run or is the other end
    already, the work that ran.
    """
    from ..core.errors import UsageError
    from ..core.registry import choose_leading, known_counters

    if from_ is None and to is None:
        return None
    running = list(counters if models else counters or known_counters())
    there = [*running, *(record.trace for record in frameworks().values())]
    for option, name in (("--from", from_), ("--to", to)):
        if name is not None and name not in there:
            raise unknown(f"counter for {option}", name, there)
    start, end = choose_leading("call")[:2]
    first = from_ or (start if start in running and to != start else _work_behind(to, models))
    second = to or (end if end in running and from_ != end else _work_behind(from_, models))
    if first == second:
        raise UsageError(f"--from and --to are both {first}; a statement needs two different ends.")
    return first, second


def _work_behind(name: str | None, models: Sequence[str]) -> str:
    """The work that a counter counts; for one framework's work, another's: that of the user's other model, if there is one."""
    from ..core.registry import known_counters

    if name in known_counters():
        return frameworks()[known_counters()[name].framework].trace
    counted = dict.fromkeys(counter.framework for counter in known_counters().values() if counter.default)
    traces = [frameworks()[framework].trace for framework in (*models, *reversed(counted))]
    return next(trace for trace in traces if trace != name)


def ends_of(request: RunRequest, from_: str | None, to: str | None) -> tuple[str, str] | None:
    """As ``ends``, for the counters that a request names. Raises UsageError."""
    from ..launch.user_models import counters_of

    given = request.factories
    counters = counters_of(given, request.counters, request.files) if given else request.counters
    return ends(counters, from_, to, tuple(given))


def choose(result: Answer, ends: tuple[str, str] | None) -> Statement | None:
    """The statement to show. Raises UsageError if an end is not in this run: of the other framework, or not installed."""
    from ..core.errors import UsageError
    from ..core.registry import known_counters
    from ..engine.settle import packages_not_installed
    from ..engine.statements import statement_between
    from ..report.view import default_statement

    if ends is None:
        return default_statement(result)
    found = statement_between(result, *ends)
    if found is None:
        there = [*(x.counter for x in result.ledgers), *(t.name for t in result.traces)]
        end = next((e for e in ends if e not in there), ends[0])
        lacking = {name for trace in result.traces for note in trace.notes for name in packages_not_installed(note)}
        counter = known_counters().get(end)
        if counter and counter.distribution in lacking:
            raise UsageError(f"{counter.distribution} is not installed in that environment, so {end} did not run.")
        raise unknown("counter for this model", end, there)
    return found
