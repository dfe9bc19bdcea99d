"""Starts a worker that runs a user's whole script (``reconcile watch``) or all ranks (--ranks), and reads what it wrote.

It has the user's standard streams and no time limit, as the script alone would have. It ends with this process, even if that
is killed, and with it all that it has started.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.causes import State
from ...core.errors import ReconcileError
from ...core.records import Ledger, Trace
from ...core.registry import known_counters
from ...engine.reconcile import Missing
from ...launch.workers import worker_files
from ...launch.workers.scratch import pack
from ...launch.workers.start import end_afterwards, start_process


def run_worker(
    asked: Mapping[str, object], folder: Path, module: str, python: str = "", variables: Mapping[str, str] = {}
) -> int:
    """Start a worker that runs ``main`` of this module with a request, and wait for it. Returns its exit status.

    ``module`` is relative to this package, with a leading dot; ``variables`` are added to those of this process.
    """
    request = folder / "request.json"
    request.write_text(json.dumps(asked))
    tool = pack(folder)
    command = [python or sys.executable, str(tool), str(request), module]
    with open(os.dup(0), "rb") as stdin:
        worker = start_process(command, stdin=stdin.fileno(), env={**os.environ, **variables})
        with end_afterwards(worker):
            return worker.wait()


def records(
    folder: Path, framework: str, counters: Sequence[str], whose: str
) -> tuple[Trace, tuple[Ledger | Missing, ...]]:
    """The trace and the ledgers in the folder; ``whose`` is named where the trace cannot be read. Raises ReconcileError."""
    trace = worker_files.outcome(folder, "trace")
    if trace is None or not isinstance(trace.record, Trace):
        raise ReconcileError(f"the trace of {whose} cannot be read{': ' + trace.reason if trace else ''}.")
    return trace.record, tuple(_ledger(folder, framework, name, trace.record.device) for name in counters)


def _ledger(folder: Path, framework: str, name: str, device: str) -> Ledger | Missing:
    outcome = worker_files.outcome(folder, name)
    if outcome is not None and isinstance(outcome.record, Ledger):
        return outcome.record
    state = State.NOT_COMPARABLE if outcome is not None and outcome.beyond else State.FAILED
    reason = outcome.reason if outcome is not None else "it left no count"
    return Missing(name, framework, state, reason, known_counters()[name].unit, device)
