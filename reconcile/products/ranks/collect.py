"""Runs the ranks of a world in a worker process (worker.py), and one device in another, and returns what they recorded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import ReconcileError, UsageError
from ...core.framework import Framework
from ...core.protocol import TRACE, WorkerRequest, to_text
from ...core.registry import frameworks, known_counters
from ...core.signals import reraise_signals
from ...launch.choose import model_fields_by_framework
from ...launch.request import RunRequest
from ...launch.runner import counters_of_request, describe_lacking
from ...launch.user_models import counters_of
from ...launch.workers import worker_files
from ...launch.workers.scratch import scratch
from ..steps import foreground
from ..steps.count import chosen_counters, collect_step
from .plan import Mesh
from .world import Rank, World


def collect(request: RunRequest, world: int, chosen: Sequence[int] = (), against: str = "") -> World:
    """The ranks of this world, or those that are ``chosen``; ``against`` is the factory of the same step on one device.

    Raises UsageError for a request that cannot be used, and for a program that fails on a rank.
    """
    framework = _framework(request)
    wrong = next((rank for rank in chosen if not 0 <= rank < world), None)
    if wrong is not None:
        raise UsageError(f"--rank {wrong} is none of --ranks {world}: give numbers from 0 to {world - 1}.")
    counters = _counters(framework, request.counters)
    told, ranks = _run_world(request, framework, counters, world, list(chosen))
    one = None
    if against:
        other = replace(request, factories={framework.name: against})
        _, (one,) = _run_world(other, framework, counters, 1, [0])
    return World(world, Mesh(**told["mesh"]), tuple(ranks), tuple(sorted(map(int, told["ran"]))), one, bool(chosen))


def _counters(framework: Framework, asked: Sequence[str]) -> list[str]:
    """Those that count the step as it runs, and formulas, which read its model afterwards; where no step is recorded as it runs,
    those of a program. Raises UsageError."""
    if not framework.steps:
        return list(counters_of({framework.name: ""}, asked))
    known = known_counters()
    formulas = [
        name for name in asked if name in known and known[name].quoted and known[name].framework == framework.name
    ]
    others = [name for name in asked if name not in formulas]
    return [*(chosen_counters(framework, others) if others or not formulas else []), *formulas]


def _framework(request: RunRequest) -> Framework:
    able = [record for record in frameworks().values() if record.ranks]
    options = " or ".join(f"--{record.name} MODULE:FUNCTION" for record in able)
    if len(request.factories) != 1 or next(iter(request.factories)) not in [record.name for record in able]:
        raise UsageError(f"--ranks takes one model of your own: {options}.")
    if request.files:
        raise UsageError(f"--ranks takes a function that makes the model, not a file: {options}.")
    if request.device != "cpu":
        raise UsageError(
            f"--ranks runs your program on the device that it chooses: leave --device {request.device} out, and make the model "
            "there in your function."
        )
    if request.context is not None:
        raise UsageError("--ranks counts a call or a training step: leave --pass prefill and --pass decode out.")
    return frameworks()[next(iter(request.factories))]


def _run_world(
    request: RunRequest, framework: Framework, counters: Sequence[str], world: int, ranks: list[int]
) -> tuple[dict[str, Any], list[Rank]]:
    with reraise_signals(), scratch() as folder:
        out = folder / "ranks"
        out.mkdir()
        body = WorkerRequest(
            framework=framework,
            tasks=(TRACE, *counters),
            out=str(out),
            counters=counters_of_request(counters),
            known={record.name: record.package for record in frameworks().values()},
            device=request.device,
            training=request.training,
            lacking=describe_lacking(framework, request),
            **model_fields_by_framework(request)[framework.name],
        )
        asked = {"request": to_text(body), "world": world, "ranks": ranks, "at_once": os.cpu_count() or 1}
        asked["nested"] = {name: nested for name in counters if (nested := known_counters()[name].nested)}
        own = {"TMPDIR": str(folder)}
        status = foreground.run_worker(asked, folder, ".products.ranks.worker", request.python, own)
        refused = worker_files.refusal(out)
        if refused is not None:
            raise UsageError(str(refused["error"]))
        told = worker_files.read_object(out, "ranks.json", {"folded": list, "ran": dict, "mesh": dict})
        if told is None:
            raise ReconcileError(f"the worker of the ranks ended without a result (status {status}).")
        name, found = framework.name, []
        for rank, ranks_alike in told["folded"]:
            trace, ledgers = foreground.records(out / str(rank), name, counters, f"rank {rank}")
            collected = collect_step(name, request.factories[name], trace, ledgers)
            found.append(Rank(tuple(ranks_alike), collected, told["ran"][str(rank)]))
        return told, found
