"""Runs one cell of a sweep or an audit in its own process, which ends, with its workers, when its parent process ends.

An executor calls ``run_cell``: JSON string in, JSON string out, so that it runs in a thread here as on another machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.defects import summary
from ...core.errors import EXIT_CRASHED, EXIT_FAILED, EXIT_USAGE, Refused, UsageError, of_system
from ...core.escaping import quote_words
from ...core.option import words
from ...core.registry import known_counters
from ...engine.answer import Answer
from ...engine.settle import Collected
from ...launch import user_models
from ...launch.environments.cache import source_digest
from ...launch.environments.interpreters import clean_environ
from ...launch.environments.runs import collect_in
from ...launch.options import by_parameter
from ...launch.request import RunRequest, run_request
from ...launch.runner import Collect
from ...launch.workers.crashes import death_of
from ...launch.workers.scratch import scratch
from ...report import reports
from ...workflow import Job, run_steps
from .. import forked_workers
from . import cells
from .nurseries import offer_nurseries
from .outcome import outcome_of, refused_outcome

START = (
    "import sys; sys.path[:] = [sys.argv[1]] + [p for p in sys.path if p]; "
    "from importlib import import_module; import_module(sys.argv[3]).main()"
)
"""Imports this copy of the package, and nothing from the working directory."""
HERE = str(Path(__file__).resolve().parents[3])
TAIL = 1 << 14
"""The number of bytes at the end of a process's output that are kept."""
KILLED = "its process was killed"
"""What endings.death_of says of a worker that another process has ended."""
More = Callable[[Collected], dict[str, Any]]
RUNNING: set[subprocess.Popen[bytes]] = set()
"""Cells that this process has started."""


def run_cell(text: str, module: str = __name__) -> str:
    """Run the cell of a request (cells.request_of, as JSON) in a process of its own, which is that module's ``main``. Returns its
    answer as JSON:

    {key, outcome, texts, cost, interrupted}, or {key, died, log} for a process that ended without one.
    """
    request = json.loads(text)
    began = time.monotonic()
    nurseries = {name: (one.control.fileno(), one.python) for name, one in offer_nurseries(request).items()}
    with scratch() as folder, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-c", START, HERE, str(folder), module, json.dumps(nurseries)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True, env=clean_environ(),
            pass_fds=[number for number, _ in nurseries.values()],
        )  # fmt: skip
        RUNNING.add(process)
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(text.encode() + b"\n")
                process.stdin.flush()  # and stays open: its end tells the process that this one is gone
            said = process.stdout.read()
            process.wait()
        finally:
            end(process)
        log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
        printed = log.read().decode("utf-8", errors="replace")
    if status := process.returncode:
        return json.dumps({"key": request["key"], "died": f"its process {death_of(status)}", "log": printed})
    answer = json.loads(said)
    answer["cost"]["wall_s"] = round(time.monotonic() - began, 1)
    return json.dumps(answer)


def end(process: subprocess.Popen[bytes]) -> None:
    """End that cell's process, and so its workers, if it still runs."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    RUNNING.discard(process)


def main(answering: Callable[[Mapping[str, Any], Path], dict[str, Any]] | None = None) -> None:
    """The process of a cell: the request is a line on standard input, the answer goes to standard output. ``answering`` is what
    answers it, ``answer`` unless another is given."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # printed output is not the answer
        request = json.loads(sys.stdin.buffer.readline())
        tempfile.tempdir = folder = sys.argv[2]
        forked_workers.accept(json.loads(sys.argv[4]))
        threading.Thread(target=_end_with_parent, daemon=True).start()
        json.dump((answering or answer)(request, Path(folder)), out)


def _end_with_parent() -> None:
    """End when the process that started this one is gone; its workers end with it."""
    while os.read(0, 1024):
        pass
    os._exit(EXIT_FAILED)


def answer(
    request: Mapping[str, Any], folder: Path, take: Collect | None = None, more: More = lambda _collected: {}
) -> dict[str, Any]:
    """Run the cell of a request in this process; ``folder`` is for the files that came along, and ``take`` is another way to run
    it (launch/runner.py), in its environment or in none. ``more`` makes what the outcome has besides of what was collected."""
    cell, manner = cells.read_cell(request)
    texts: Mapping[str, str | bytes] = {}
    interrupted = ""
    try:
        _same(request, cell)
        os.chdir(request["folder"])
        job, refusals = _either(cell, _request(cell, manner, request["paths"], folder), take)
        found = None if job is None else job.answer
        outcome = outcome_of(cell.name, found, refusals)
        if job is not None and job.collected is not None and outcome["traces"]:
            outcome.update(more(job.collected))
        if found is not None:
            texts = reports.render(found, manner.formats, None, command_of(cell, manner))
            interrupted = _describe_interruption(found)
    except Exception as error:
        sentence, code = _fault(error)
        outcome = {**refused_outcome(cell.name, {"": sentence}), "exit_code": code}
        interrupted = sentence if KILLED in sentence else ""
    return {
        "key": request["key"],
        "outcome": outcome,
        "texts": {name: text for name, text in texts.items() if isinstance(text, str)},
        "cost": {"peak_bytes": _peak()},
        "interrupted": interrupted,
    }


def _fault(error: Exception) -> tuple[str, int]:
    """What to say of a cell that ended so, and its exit code."""
    if isinstance(error, Refused):
        return error.sentence, EXIT_USAGE
    if isinstance(error, UsageError):
        return str(error), EXIT_USAGE
    if isinstance(error, OSError):
        return of_system(error), EXIT_FAILED
    return f"a defect of reconcile: {summary(error)}", EXIT_CRASHED


def command_of(cell: cells.Cell, manner: cells.Manner) -> str:
    """The command that runs this cell again; '' where a line of ``reconcile run`` cannot say it."""
    if cell.arguments or manner.texts or cell.model.endswith(".py"):
        return ""
    given = {
        "model": cell.model,
        **cell.factories,
        "inputs": list(map(user_models.text_of, cells.inputs_of(cell))),
        "overrides": cell.overrides,
        "environment": cell.environment.get("name"),
        **manner.decisive_options,
    }
    known = by_parameter().items()
    return quote_words(
        ["reconcile", "run", *(w for name, o in known if given.get(name) for w in words(o.flag, given[name]))]
    )


def _same(request: Mapping[str, Any], cell: cells.Cell) -> None:
    """Raise UsageError where another tool or other packages than those of the key would run."""
    if request["tool"] != source_digest():
        raise UsageError("the machine that ran this has another version of reconcile: install the same one there.")
    here = cells.versions(cell) if cell.place is None else {}
    meets = request["meets"]
    for name in sorted({*here, *meets}):
        if here.get(name) != meets.get(name):
            raise UsageError(
                f"the machine that ran this has {name} {here.get(name, 'not installed')}, the one that started the sweep has "
                f"{meets.get(name, 'none')}: install the same packages there."
            )


def _request(cell: cells.Cell, manner: cells.Manner, paths: list[str], folder: Path) -> RunRequest:
    def lay_out_paths(option: str) -> tuple[Path, ...]:
        place = folder / option
        place.mkdir(exist_ok=True)
        files = {place / name: text for name, text in manner.texts[option].items()}
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        return tuple(files)

    asked = {**cell.factories, **manner.options, **{option: lay_out_paths(option) for option in manner.texts}}
    request = run_request(model=cell.model, overrides=cell.overrides, formats=manner.formats, **asked)
    return replace(request, arguments=cell.arguments, inputs=cells.inputs_of(cell), paths=tuple(paths))


def _either(cell: cells.Cell, request: RunRequest, take: Collect | None) -> tuple[Job | None, dict[str, str]]:
    """The run, and why frameworks are not in it: one beside which the model's own code refuses to work is left out.

    Raises UsageError for anything else that is wrong with it.
    """
    place = cell.place
    if take is None and place is not None:
        take = collect_in(place)
    refusals: dict[str, str] = {}
    while True:
        try:
            return run_steps(Job(request, take=take)), refusals
        except Refused as error:
            if not error.declined:
                raise
            refusals[error.declined] = error.sentence
            rest = {name: where for name, where in request.factories.items() if name not in refusals}
            if not rest:
                return None, refusals
            counters = (name for name in request.counters if known_counters()[name].framework in rest)
            request = replace(request, factories=rest, counters=tuple(counters))


def _describe_interruption(found: Answer) -> str:
    """What ended a worker from outside, if anything did: another try may go through."""
    reasons = [trace.reason for trace in found.traces] + [ledger.reason for ledger in found.ledgers]
    reasons += [note for trace in found.traces for note in trace.notes]
    return next((reason for reason in reasons if KILLED in reason), "")


def _peak() -> int:
    """Bytes of memory that the largest of this cell's processes has held at once."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(forked_workers.peak(), *(resource.getrusage(one).ru_maxrss for one in who))
    return peak if sys.platform == "darwin" else peak << 10
