"""The steps of a run, from its request to its ``Answer``. Read this first.

=============  ==============================================================================================
read           the options become a request: ``run_request`` (launch/request.py)
``prepare``    the conventions and the formulas that the request names: ``conventions_of`` (core/conventions.py),
               ``formulas_of`` (launch/choose.py)
``collect``    ``choose_counters``, ``model_fields_by_framework`` (launch/choose.py), ``start_workers`` and
               ``read_records`` (launch/runner.py): what comes out are traces and ledgers
``settle``     traces and ledgers become statements, layers and a verdict: one ``Answer`` (engine/settle.py)
``extend``     products add to the answer what they know of the model (hooks on an answer,
               core/product.py)
render         the answer becomes reports, and is written: ``render`` (report/reports.py)
=============  ==============================================================================================

``reconcile run`` (cli/commands/run.py), ``reconcile.run`` (api/__init__.py) and every cell of a sweep take these steps
between reading and rendering.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from .core.conventions import Conventions, conventions_of
from .core.registry import load_places
from .engine import settle as engine
from .engine.answer import Answer
from .engine.settle import Collected
from .launch import runner
from .launch.choose import formulas_of
from .launch.request import RunRequest
from .launch.runner import Collect
from .launch.workers.supervisor import Event
from .work import load


def silent(_event: Event) -> None:
    """A progress callback that tells nothing."""


@dataclass(slots=True)
class Job:
    """One run: what was asked for, and what the steps have made of it so far. ``take`` replaces ``runner.collect``."""

    request: RunRequest
    progress: Callable[[Event], None] = silent
    take: Collect | None = None
    conventions: Conventions | None = None
    collected: Collected | None = None
    answer: Answer | None = None


def prepare(job: Job, until_the_end: ExitStack) -> None:
    """Read the conventions and the formulas that the request names."""
    job.conventions = conventions_of(job.request.convention, job.request.convention_files)
    until_the_end.enter_context(formulas_of(job.request))


def collect(job: Job, _until_the_end: ExitStack) -> None:
    """Choose the counters, find the models, start a worker per framework, read the traces and ledgers that they write."""
    found = (job.take or runner.collect)(job.request, job.progress)
    job.collected = engine.without_absent(found, job.request.counters)


def settle(job: Job, _until_the_end: ExitStack) -> None:
    """Reconcile every ledger with its trace, and the traces with each other."""
    assert job.collected is not None
    assert job.conventions is not None
    load(trace.framework for trace in job.collected.traces)
    settled = engine.settle_each if job.request.every_convention else engine.settle
    job.answer = settled(job.collected, job.conventions, job.request.mapping)


def extend(job: Job, _until_the_end: ExitStack) -> None:
    """Let every product add what it knows to the answer, such as numbers that were published for a pair."""
    assert job.collected is not None
    assert job.answer is not None
    for extend_answer in load_places("answer_hooks"):
        job.answer = extend_answer(job.request, job.collected, job.answer)


STEPS = (prepare, collect, settle, extend)


def run_steps(job: Job) -> Job:
    """The job after all steps. Raises UsageError for an unknown model, counter, convention or parameter, and for files that
    cannot be read."""
    with ExitStack() as until_the_end:
        for step in STEPS:
            step(job, until_the_end)
    return job


def run(request: RunRequest, progress: Callable[[Event], None] = silent, take: Collect | None = None) -> Answer:
    """Run the counters of a model and reconcile their results. Raises UsageError as :func:`run_steps` does."""
    answer = run_steps(Job(request, progress, take)).answer
    assert answer is not None
    return answer
