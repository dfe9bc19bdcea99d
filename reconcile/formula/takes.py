"""The ways to run a model at several points: in worker processes, or in this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.protocol import point_of
from ..core.results import RunResult
from ..engine.settle import Collected
from ..launch import runner
from ..launch.in_process import collect_live
from ..launch.request import Point, RunRequest
from ..launch.runner import CollectAt
from ..launch.supervisor import Event
from ..launch.user_models import text_of
from .fit import Take


def in_workers(request: RunRequest, tell: Callable[[Event], None], there: CollectAt | None = None) -> Take:
    """In one worker per framework, or ``there``, in another environment. An event says which of the points it is about."""

    def take(points: Sequence[Point], counting: bool) -> Sequence[tuple[Collected, RunResult]]:
        def telling(event: Event) -> None:
            task, index = point_of(event.task)
            tell(replace(event, task=f"{task}, {index + 1} of {len(points)}" if task else ""))

        return runner.run_at(request, points, telling, there, counting=counting)

    return take


def in_this_process(models: Mapping[str, Any], request: RunRequest, tell: Callable[[Event], None]) -> Take:
    """In this process, one point after another."""

    def take(points: Sequence[Point], counting: bool) -> Sequence[tuple[Collected, RunResult]]:
        return [run(point, counting) for point in points]

    def run(point: Point, counting: bool) -> tuple[Collected, RunResult]:
        inputs = [text_of(given) for given in point.inputs]
        collected = collect_live(
            models, inputs, request.counters, request.device, tell, request.training, request.context
        )
        collected = collected if counting else replace(collected, ledgers=())
        return collected, runner.run(request, tell, lambda _request, _tell: collected)

    return take
