"""Measures a row of the gallery's second page: a training step of a pair at its own size, phase by phase.

command.py keeps the row in ``steps.json`` with the hash of the pair's source, and makes ``training.md`` of that file. ``FILE``
is the committed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...core.conventions import ALL, MATMUL
from ...core.errors import UsageError, brief, short
from ...engine.answer import Answer
from ...engine.phases import PhaseRow
from ...launch.options import OPTIMIZER
from ...launch.request import run_request
from ...launch.runner import collect
from ...model_zoo import loading
from ..decode.sources import claims
from ..obstacles import list_obstacles
from .rows import MAKE_GALLERY_AGAIN, CounterCell, cell, read_rows, settle_all, source_of

FILE = Path(loading.HERE) / "steps.json"
DEVICE = "device"
"""The one key in a pair's ``TRAINING`` that is not a parameter of the pair."""
SHOWN = (MATMUL, ALL)


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One model's training step.

    Attributes:
        model: The pair's name.
        source: The hash of the sources that the row was measured on.
        settings: The pair's settings by name; empty if the step could not run.
        at: The settings of the step that differ from the pair's own.
        device: Where the counters ran PyTorch's side.
        work: FLOPs by framework, convention and phase, without a framework whose trace is incomplete under one of them.
        cells: What each counter reported, by counter.
        states: The exit code of the reconciliation under each convention, by its name.
        open: What does not reconcile, a sentence each.
    """

    model: str
    source: str
    settings: Mapping[str, object]
    at: Mapping[str, str]
    device: str
    work: Mapping[str, Mapping[str, Mapping[str, int]]]
    cells: Mapping[str, CounterCell]
    states: Mapping[str, int]
    open: tuple[str, ...] = ()

    def total(self, framework: str, convention: str) -> PhaseRow:
        """The step's FLOPs by phase."""
        return PhaseRow("", self.work[framework][convention])


def measure(model: str, baselines: Path) -> tuple[TrainingRow, Answer | None]:
    """Run a training step of a pair with every default counter. The result under ``matmul`` is returned with the row; its
    ``others`` are the results under the other conventions, and the pair's published figures are looked up in the
    ``baselines`` as well.

    If the step cannot run, the row says so. Raises UsageError for a model that does not exist.
    """
    source = source_of(model)
    at, device = settings_of(model)
    try:
        collected = collect(
            run_request(model=model, overrides=at, device=device, pass_="training", optimizer=OPTIMIZER)
        )
    except UsageError as error:
        return TrainingRow(model, source, {}, at, device, {}, {}, {MATMUL.name: 3}, (str(error),)), None
    results = settle_all(collected)
    shown = replace(results[MATMUL.name], published=claims(model, collected, (baselines,)))
    step = TrainingRow(
        model=model,
        source=source,
        settings=shown.params,
        at=at,
        device=device,
        work={
            trace.framework: {convention.name: shown.by_phase(trace, convention) for convention in SHOWN}
            for trace in shown.traces
            if all(convention.name in trace.totals for convention in SHOWN)
        },
        cells={x.counter: cell(shown, x.counter, x.framework) for x in shown.ledgers},
        states={name: result.exit_code for name, result in results.items()},
        open=tuple(list_obstacles(results)),
    )
    return step, shown


def settings_of(model: str) -> tuple[dict[str, str], str]:
    """The settings that the pair asks for in a training step, such as a second sample for a batch norm of vectors, and the
    device, which is the CPU unless the pair names another one."""
    at = dict(loading.load_pair(loading.pair_path(model)).training)
    return at, at.pop(DEVICE, "cpu")


def read_training(path: Path = FILE) -> dict[str, TrainingRow]:
    """The rows in this file; none if there is no such file. Raises UsageError if it cannot be read."""
    rows = read_rows(path, TrainingRow)
    needed = {convention.name for convention in SHOWN}
    for row in rows.values():
        if not all(needed <= {*work} for work in row.work.values()):
            raise UsageError(f"the file {brief(path)} lacks work of {short(row.model)}. {MAKE_GALLERY_AGAIN}")
    return rows
