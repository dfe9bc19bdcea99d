"""Runs a model at several points for fit.py: in worker processes, in another environment, or in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.protocol import point_of
from ...engine.answer import Answer
from ...engine.settle import Collected, settle, without_absent
from ...launch import runner
from ...launch.choose import prepare_conventions
from ...launch.in_process import collect_live
from ...launch.request import Point, RunRequest
from ...launch.runner import CollectAt
from ...launch.user_models import text_of
from ...launch.workers.supervisor import Event
from .fit import Take


def in_workers(request: RunRequest, tell: Callable[[Event], None], there: CollectAt | None = None) -> Take:
    """A Take that runs in one worker per framework, or by ``there`` in another environment. Each event names its point."""

    def take(points: Sequence[Point], counting: bool) -> Sequence[tuple[Collected, Answer]]:
        def tell_event(event: Event) -> None:
            task, index = point_of(event.task)
            tell(replace(event, task=f"{task}, {index + 1} of {len(points)}" if task else ""))

        return run_at(request, points, tell_event, there, counting=counting)

    return take


def run_at(
    request: RunRequest,
    points: Sequence[Point],
    progress: Callable[[Event], None] = lambda _event: None,
    there: CollectAt | None = None,
    *,
    counting: bool = True,
) -> list[tuple[Collected, Answer]]:
    """Run a model at several points and reconcile the results of each. Without ``counting`` only the traces are taken."""
    with prepare_conventions(request) as conventions:
        found = (there or runner.collect_at)(request, points, progress, counting)
        collected = [without_absent(at, request.counters) for at in found]
        return [(at, settle(at, conventions, request.mapping)) for at in collected]


def in_this_process(models: Mapping[str, Any], request: RunRequest, tell: Callable[[Event], None]) -> Take:
    """A Take that runs in this process, one point after another."""

    def collect(
        request: RunRequest, points: Sequence[Point], tell: Callable[[Event], None], counting: bool
    ) -> list[Collected]:
        found = [collect_live(models, [text_of(i) for i in point.inputs], request, tell) for point in points]
        return found if counting else [replace(at, ledgers=()) for at in found]

    return lambda points, counting: run_at(request, points, tell, collect, counting=counting)
