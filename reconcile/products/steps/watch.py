"""``reconcile watch`` without the command line: runs the script in a process (watched_program.py), and reconciles its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ...core.counter import Counter
from ...core.errors import UsageError
from ...core.registry import frameworks, known_counters
from ...core.signals import reraise_signals
from ...engine.answer import Answer
from ...engine.settle import Collected
from ...launch.request import RunRequest
from ...launch.runner import counters_of_request
from ...launch.workers import worker_files
from ...launch.workers.scratch import scratch
from . import foreground
from .count import collect_step, refuse_counter

OLDEST = (3, 10)
"""The Python in which watched_program.py runs, and what records a step there."""


@dataclass(frozen=True, slots=True)
class Script:
    """A program and what to count of it.

    Attributes:
        name: Its file, or the name of a module.
        arguments: Its arguments on the command line.
        module: Whether ``name`` is a module's name, as after ``python -m``.
        first: The first step to count, from 1.
        last: The last step to count.
        call: The call of a model to count in place of steps, from 1; 0 for none.
        go_on: Whether the program runs to its end.
        python: The interpreter, if it is the user's own; '' for this one.
        version: The version of that interpreter, such as ``3.11``; '' without one.
        misplaced: An option of this command that is among the arguments; '' for none.
        marks: Whether Nsight Compute runs around this command, and gets the step's kernels with the operators around them.
    """

    name: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    first: int = 1
    last: int = 1
    call: int = 0
    go_on: bool = False
    python: str = ""
    version: str = ""
    marks: bool = False
    misplaced: str = ""

    @property
    def stem(self) -> str:
        """The name of its reports."""
        return self.name.rpartition(".")[2] if self.module else Path(self.name).stem

    @property
    def wanted(self) -> str:
        """What is counted, in words."""
        if self.call:
            return f"call {self.call} of a model"
        return f"step {self.first}" if self.first == self.last else f"steps {self.first} to {self.last}"


def watch(script: Script, request: RunRequest) -> Answer:
    """Run the script and reconcile what was counted. Raises UsageError for a script that ends or fails before that."""
    from ... import workflow

    collected, run = _run_script(script, request)
    answer = workflow.run(replace(request, every_convention=True), take=lambda *_: collected)
    return replace(answer, run=run)


def _run_script(script: Script, request: RunRequest) -> tuple[Collected, str]:
    if not script.module and not Path(script.name).is_file():
        beside = [path.name for path in Path(script.name).parent.glob("*.py")]
        near = get_close_matches(Path(script.name).name, beside, n=1)
        hint = f" Did you mean {Path(script.name).with_name(near[0])}?" if near else ""
        raise UsageError(
            f"{script.name} is no file: give the script that you run, or its module's name after -m.{hint}"
        )
    if script.version and tuple(map(int, script.version.split("."))) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise UsageError(f"--python is Python {script.version}, and a step is watched in Python {oldest} or later.")
    recording = [record for record in frameworks().values() if record.watched and (record.steps or not script.marks)]
    counters = _counters([record.name for record in recording], request.counters)
    with reraise_signals(), scratch() as folder:
        asked = {
            "frameworks": [
                {
                    "framework": record._asdict(),
                    "counters": counters_of_request(counters[record.name]),
                    "nested": [known_counters()[name].nested for name in counters[record.name] if record.steps],
                }
                for record in recording
            ],
            "out": str(folder),
            "script": script.name,
            "arguments": list(script.arguments),
            "module": script.module,
            "steps": [script.first, script.last],
            "call": script.call,
            "go_on": script.go_on,
            "marks": script.marks,
        }
        foreground.run_worker(asked, folder, ".products.steps.watched_program", script.python)
        return _read_collected(script, folder, counters, request.counters)


def _counters(recording: Sequence[str], asked: Sequence[str]) -> dict[str, list[str]]:
    """The counters of each framework that count a step as it runs, or read its graph: all that cost little, or those asked."""
    able = {
        name: [c.name for c in known_counters().values() if c.framework == name and _counts_steps(c)]
        for name in recording
    }
    known = [name for names in able.values() for name in names]
    for name in asked:
        if name in known_counters() and name not in known:
            raise refuse_counter(name, known)
    costly = {c.name for c in known_counters().values() if c.rare or (c.nested and not c.default)}
    return {
        framework: [name for name in names if name in asked or (not asked and name not in costly)]
        for framework, names in able.items()
    }


def _counts_steps(counter: Counter) -> bool:
    if frameworks()[counter.framework].steps:
        return bool(counter.nested)
    return not counter.blind and not counter.variables  # those are read before the framework is imported


def _read_collected(
    script: Script, folder: Path, counters: dict[str, list[str]], asked: Sequence[str]
) -> tuple[Collected, str]:
    """What the program left, and the word that processes of its run share. Raises UsageError where it ended before its step."""
    seen = worker_files.read_object(folder, "seen.json", {"imported": list, "done": bool, "error": str})
    if seen is None or not seen.get("done"):
        raise UsageError(_why(script, seen))
    framework = str(seen["framework"])
    if asked and not counters[framework]:
        title = frameworks()[framework].title
        raise UsageError(f"{script.name} takes a step of {title}, which {' and '.join(asked)} cannot count.")
    trace, ledgers = foreground.records(folder, framework, counters[framework], script.name)
    program = " ".join([script.name, *script.arguments])
    return collect_step(framework, script.stem, trace, ledgers, program), str(seen.get("run", ""))


def _why(script: Script, seen: dict[str, Any] | None) -> str:
    """Why there is no count, and what to do."""
    if seen is None:
        return (
            f"{script.name} ended its process before {script.wanted}: let it run to that, or count less with --steps 1."
        )
    if seen["error"]:
        text = f"{script.name} failed before the end of {script.wanted}: {seen['error'].rstrip('.')}. Its traceback is above."
        lacks = seen["error"].startswith(ModuleNotFoundError.__name__) and not script.python
        return text + " Where another environment has that module, give its interpreter with --python PATH." * lacks
    if not seen["imported"]:
        watched = sorted(
            (record for record in frameworks().values() if record.watched), key=lambda record: record.order
        )
        titles = " or ".join(record.watched[1] for record in watched)
        return f"{script.name} ended without importing {titles}, so there is no step to count."
    if seen.get("below"):
        return f"{script.name}: {seen['below']}."
    called, took = _times(seen["calls"]), _several(seen["steps"], "step")
    if seen["status"]:
        return f"{script.name} ended with status {seen['status']} before the end of {script.wanted}." + (
            f" If {script.misplaced} is an option of reconcile, it comes before SCRIPT." * bool(script.misplaced)
        )
    foreground = len(seen["imported"]) == 1  # otherwise the calls may be of another framework
    if not seen["steps"] and seen.get("without") and (not seen["calls"] or (foreground and not script.call)):
        more = "" if foreground else "no optimizer stepped, and "
        return f"{script.name} ended without a step to count: {more}{seen['without']}."
    if script.call:
        return (
            f"{script.name} called a model {called}, so there is no {script.wanted}: give --calls 1 to {seen['calls']}."
        )
    if not seen["steps"]:
        more = (
            f" It called a model {called}: count one call, its forward pass alone, with --calls 1."
            if seen["calls"]
            else ""
        )
        return f"no optimizer stepped in {script.name}, so there is no step to count.{more}"
    return f"{script.name} took {took}, so there is no {script.wanted}: give --steps 1 to {seen['steps']}."


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)


def _times(count: int) -> str:
    return "once" if count == 1 else _several(count, "time")
