"""The process in which ``reconcile watch`` runs a user's program as ``python train.py`` would, and records the step asked for.

steps/watch.py starts it with a file that holds a table: the program and its arguments, the frameworks to watch, with the
counters of each, the steps or the call, and a folder. It leaves there ``trace.json``, a file per counter and ``seen.json``. A
framework is watched from the moment at which the program has imported the module that its record names.

Python 3.10 and standard library, plus the framework that the program imports: steps/watch.py refuses an older Python.
"""

# ruff: noqa: UP020, UP029  (`open` is bound when the module is: the builtin may be replaced later)

import importlib
import os
import runpy
import sys
import traceback
from functools import partial
from io import open
from json import dumps, loads
from os import path as paths
from typing import Any, NoReturn

from ...adapters.shared.imported import Imported
from ...adapters.shared.refusal import BeyondCounter, reason_of
from ...core.framework import Framework, absolute, adapter_of
from ...core.message import first_line
from ...core.records import to_json
from ...worker.main import write
from .pending_step import PendingStep


class Program:
    """The program, what was asked of it, and what was seen."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.watches: list[Any] = []
        self.seen: dict[str, Any] = {"imported": [], "done": False, "error": "", "status": 0}

    def main(self) -> int:
        """Run it. Returns the status that it ends with."""
        for record in self.asked["frameworks"]:
            framework = Framework(**{**record["framework"], **_tuples(record["framework"])})
            sys.meta_path.insert(0, Imported(framework.watched[0], partial(self._watch_framework, framework, record)))
        status = 0
        try:
            self._run()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
            if isinstance(error.code, str):
                print(error.code, file=sys.stderr)
        except BaseException as error:
            self.seen["error"] = f"{type(error).__name__}: {first_line(error)}"
            frame = error.__traceback__
            while frame is not None and frame.tb_frame.f_globals.get("__name__") in (__name__, runpy.__name__):
                frame = frame.tb_next
            traceback.print_exception(type(error), error, frame)
            status = 1
        self.seen["status"] = status
        for watch in self.watches if not status else []:
            if hasattr(watch, "end_own_step"):
                watch.end_own_step()
        self.tell()
        return status

    def _run(self) -> None:
        script, arguments = self.asked["script"], self.asked["arguments"]
        if self.asked["module"]:
            sys.argv[:] = [script, *arguments]
            sys.path[0] = os.getcwd()
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = [script, *arguments]
            sys.path[0] = paths.dirname(paths.abspath(script))
            runpy.run_path(script, run_name="__main__")

    def _watch_framework(self, framework: Framework, record: dict[str, Any]) -> None:
        nested = tuple([importlib.import_module(absolute(module)).nested for module in record["nested"]])
        self.seen["imported"].append(framework.name)
        done = partial(self._leave_step, framework, record["counters"])
        steps, call = tuple(self.asked["steps"]), self.asked["call"]
        marks = {"marks": True} if self.asked["marks"] else {}
        name, _, watching = framework.watched
        adapter_of(framework)  # which tells the tracer what products count
        watch = importlib.import_module(absolute(watching)).watch
        self.watches.append(watch(sys.modules[name], nested, steps, call, done, **marks))

    def _leave_step(self, framework: Framework, counters: dict[str, Any], taken: Any) -> None:
        """The step is over, or ready to run: leave what was recorded, and end the program unless it is to go on.

        ``taken`` is the context that recorded it, or the model and its batch, or None for a program that is refused.
        """
        if self.seen["done"]:
            return
        if taken is None:
            self._end(1)
        context = taken if framework.steps else PendingStep(framework, counters, *taken)
        folder = self.asked["out"]
        try:
            trace = context.trace()
        except Exception as error:
            self.seen["below"] = "its step cannot be traced: " + reason_of(error).rstrip(".")
            self._end(1)
        write(paths.join(folder, "trace.json"), to_json(trace))
        for counter, ledger in zip(counters, context.ledgers(), strict=True):
            leave_ledger(folder, counter, ledger, beyond=bool(framework.steps) or isinstance(ledger, BeyondCounter))
        self.seen.update(done=True, framework=framework.name, seconds=context.seconds)
        self.tell()
        if not self.asked["go_on"]:
            self._end(0)

    def _end(self, status: int) -> NoReturn:
        """End the program in its middle."""
        self.tell()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)  # a program may wait for others at its end, and catch whatever is raised

    def tell(self) -> None:
        """Leave what was seen."""
        seen = dict(self.seen)
        for watch in self.watches:
            for name, value in watch.summary().items():
                held = seen.get(name, type(value)())
                seen[name] = f"{held}; {value}" if held and value and isinstance(value, str) else held + value
        write(paths.join(self.asked["out"], "seen.json"), dumps(seen))


def leave_ledger(folder: str, counter: str, ledger: Any, *, beyond: bool) -> None:
    """Leave a counter's ledger in a folder; of an exception, why there is none: ``beyond`` says that the model is the reason."""
    if isinstance(ledger, Exception):
        failed = {"reason": reason_of(ledger), "missing": "", "beyond": beyond}
        write(paths.join(folder, counter + ".error.json"), dumps(failed))
    else:
        write(paths.join(folder, counter + ".json"), to_json(ledger))


def _tuples(record: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where a record has tuples."""
    return {name: tuple(value) for name, value in record.items() if isinstance(value, list)}


def main(path: str) -> int:
    """Entry point: run the program of the request in the file at ``path``."""
    with open(path) as file:
        asked = loads(file.read())
    return Program(asked).main()
