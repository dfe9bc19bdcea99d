"""The gallery's second page: a training step of every pair of the zoo at its own size, phase by phase.

A row is measured once and kept in ``model_zoo/steps.json``, beside the hash of the pair's source; ``reports/training.md``
is made from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.conventions import ALL, BUILT_IN, MATMUL
from ..core.errors import UsageError
from ..core.results import RunResult
from ..decode.search import claims
from ..engine.phases import PhaseRow, phases
from ..engine.settle import settle
from ..launch.request import OPTIMIZERS, run_request
from ..launch.runner import collect
from ..model_zoo import pair as pairs
from .rows import Cell, cell, open_, source_of
from .rows import read as read_rows

FILE = Path(pairs.HERE) / "steps.json"
OPTIMIZER = OPTIMIZERS[0]
DEVICE = "device"
"""Among a pair's ``TRAINING``: no parameter of it."""
SHOWN = (MATMUL, ALL)


@dataclass(frozen=True, slots=True)
class Step:
    """One model's training step, ``at`` the settings that it takes where these are not the pair's own,
    ``device`` where the counters ran PyTorch's side.

    ``work``: framework -> convention -> phase -> FLOPs, without a framework whose trace is incomplete.  ``states`` maps a
    convention to the exit code of its reconciliation; ``open`` says what does not reconcile.
    """

    model: str
    source: str
    settings: Mapping[str, Any]
    at: Mapping[str, str]
    device: str
    work: Mapping[str, Mapping[str, Mapping[str, int]]]
    cells: Mapping[str, Cell]
    states: Mapping[str, int]
    open: tuple[str, ...] = ()

    def whole(self, framework: str, convention: str) -> PhaseRow:
        """The step's FLOPs by phase."""
        return PhaseRow("", self.work[framework][convention])


def measure(model: str, baselines: Path) -> tuple[Step, RunResult | None]:
    """Run a training step of a pair with every counter; the result under ``matmul`` goes along, with the other
    conventions' as its ``others`` and the pair's published figures, looked up in the ``baselines`` as well.

    What cannot be run is a row that says so. Raises UsageError for a model that is not there.
    """
    source = source_of(model)
    at, device = settings_of(model)
    try:
        found = collect(run_request(model=model, overrides=at, device=device, pass_="training", optimizer=OPTIMIZER))
    except UsageError as error:
        return Step(model, source, {}, at, device, {}, {}, {MATMUL.name: 3}, (str(error),)), None
    results = {name: settle(found, convention, BUILT_IN) for name, convention in BUILT_IN.items()}
    others = tuple(result for name, result in results.items() if name != MATMUL.name)
    shown = replace(results[MATMUL.name], others=others, published=claims(model, found, baselines))
    step = Step(
        model=model,
        source=source,
        settings=shown.params,
        at=at,
        device=device,
        work={
            trace.framework: {convention.name: phases(trace, convention) for convention in SHOWN}
            for trace in shown.traces
            if trace.complete
        },
        cells={x.counter: cell(shown, x.counter, x.framework) for x in shown.ledgers},
        states={name: result.exit_code for name, result in results.items()},
        open=tuple(open_(results)),
    )
    return step, shown


def settings_of(model: str) -> tuple[dict[str, str], str]:
    """The settings that a pair says its training step needs, such as a second sample for a batch norm of vectors, and the
    device where its own words ask for another one than the CPU."""
    at = dict(pairs.load_pair(pairs.pair_path(model)).training)
    return at, at.pop(DEVICE, "cpu")


def read(path: Path = FILE) -> dict[str, Step]:
    """The rows kept there; none where there is no such file. Raises UsageError for one that cannot be read."""
    return read_rows(path, _step)


def _step(fields: dict[str, Any]) -> Step:
    cells = {name: Cell(**found) for name, found in fields["cells"].items()}
    return Step(**{**fields, "cells": cells, "open": tuple(fields["open"])})
