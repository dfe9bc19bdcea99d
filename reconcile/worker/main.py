"""The worker process: imports one framework, runs its tracer and counters task by task, and writes the results as JSON files.

Home starts it with a file that holds a request (core/protocol.py).  For every task it appends {"task", "phase"} to
``events.jsonl`` and leaves ``<task>.json`` (a trace or a ledger) or ``<task>.error.json``.  Before any framework is loaded it
leaves ``meta.json`` with the pair's description of itself, or the reason why it cannot be used. A factory is called only
after that, and an error in it goes to ``refused.json``.  An event {"theirs"} says which of the user's own code runs from then on.

Python 3.6 and standard library, plus the framework it serves.
"""

# ruff: noqa: UP020, UP029  (`open` is bound when the module is: the builtin may be replaced later)

import contextlib
import importlib
import sys
from functools import partial
from io import open
from json import dumps
from os import getcwd, getpid, replace
from os import path as paths
from typing import Any, Dict, List

from ..adapters.shared import keras_model
from ..adapters.shared.refusal import BeyondCounter, FactoryError, reason_of
from ..core.framework import absolute, adapter_of
from ..core.message import first_line
from ..core.protocol import TRACE, WorkerRequest, from_text, point_of
from ..core.records import to_json
from ..model_zoo import loading
from ..model_zoo import pair as pairs
from . import factory, import_path, introspect, process_guard, user_code

EMPTY = {"layers": [], "notes": [], "published": [], "doc": "", "source": ""}
"""The part of a pair file's description that a factory does not have."""


def write(path: str, text: str) -> None:
    """Write a text file completely or not at all."""
    with open(path + ".part", "w") as file:
        file.write(text)
    replace(path + ".part", path)


class Worker:
    """Serves one request, task by task; a caller's own process has it ``take`` single records (launch/in_process.py)."""

    def __init__(self, request: WorkerRequest, pair: Any = None) -> None:
        self.request = request
        self.pair = pair
        self.framework = request.framework
        self.adapter: Any = None
        self.capture: Any = None
        self.done = 0
        self.point = 0

    def event(self, task: str, phase: str) -> None:
        """Tell the runner which phase a task is in."""
        self._tell({"task": task, "phase": phase})

    def user_code(self, action: str) -> None:
        """Tell the runner which of the user's own code runs now; '' when it has ended."""
        self._tell({"theirs": action})

    def _tell(self, event: Dict[str, str]) -> None:
        with open(paths.join(self.request.out, "events.jsonl"), "a") as file:
            file.write(dumps(event) + "\n")

    def _leave(self, name: str, data: Dict[str, Any]) -> None:
        write(paths.join(self.request.out, name), dumps(data))

    def run(self) -> int:
        """Serve the request. Returns the exit status: 0, even if single tasks failed."""
        if self.request.lent:
            import_path.borrow(self.request.lent)
        for package, folder in self.request.brought.items():
            import_path.import_outside(package, folder)
        try:
            with contextlib.suppress(FactoryError):  # if there is none, a later task reports that
                self._adapter().before_import()
            meta = self._meta()
            self._leave("meta.json", meta)
            if "error" in meta:
                return 0
            self.event("", "loading")
            self._adapter()
            self._prepare(meta["params"])
            for task in self.request.tasks:
                self._task(task, self._params_at(point_of(task)[1], meta))
        except FactoryError as error:
            self._refuse(str(error), isinstance(error, user_code.Declined))
        return 0

    def _prepare(self, params: Dict[str, Any]) -> None:
        """Prepare a user's own model before any counter runs. Raises FactoryError."""
        self.pair.ready(self.request.lacking, self.user_code)
        if self.request.trial:
            call, called_with = self._capture().plain_call(pairs.Params(params))
            self.pair.tried(call, lambda: called_with)

    def _params_at(self, point: int, meta: Dict[str, Any]) -> Dict[str, Any]:
        """The parameters at the point of that index, at which the model and its capture are made from now on."""
        if not self.request.points:
            return meta["params"]
        if self.request.model is not None:
            _, inputs, fused = self.request.points[point]
            self.pair.give(inputs, fused)
        if point != self.point:
            self.point, self.capture = point, None
            keras_model.rename({})  # layers without a name get the same ones at every point
        return meta["points"][point]["params"]

    def _adapter(self) -> Any:
        """The framework's adapter. Raises FactoryError if it cannot be imported, usually because the framework is missing."""
        if self.adapter is None:
            try:
                self.adapter = adapter_of(self.framework)
            except ImportError as error:
                process_guard.note(error)
                lacks = (error.name or "").partition(".")[0] == self.framework.package
                why = f"the adapter {self.framework.adapter} cannot be imported: {first_line(error)}."
                raise FactoryError(self.request.lacking if lacks else why) from error
        return self.adapter

    def _capture(self) -> Any:
        if self.capture is None:  # the pair was not known before
            self.capture = self._adapter().capture(self.request, self.pair)
        return self.capture

    def take(self, task: str, params: Dict[str, Any]) -> Any:
        """The trace or ledger of one task. Raises whatever building and running the model raises."""
        name = point_of(task)[0]
        if name == TRACE:
            return self._capture().trace(pairs.Params(params))
        module, package = self.request.counters[name]
        counter = importlib.import_module(absolute(module) + ".capture")
        ledger = self._capture().ledger(partial(counter.capture, name), pairs.Params(params))
        lent = (import_path.PACKAGE_WAS_LENT,) if import_path.is_lent(package) else ()
        return ledger._replace(notes=ledger.notes + lent)

    def _task(self, task: str, params: Dict[str, Any]) -> None:
        """Run one task. Raises FactoryError if no task was done before it, because the error then concerns all tasks."""
        self.event(task, "started")
        process = getpid()
        try:
            text = to_json(self.take(task, params))
        except FactoryError as error:
            if not self.done:
                raise
            self._write_failure(task, error)
        except BaseException as error:  # sys.exit as well: the other tasks do not depend on this one
            process_guard.only(process)
            self._write_failure(task, error)
        else:
            process_guard.only(process)
            write(paths.join(self.request.out, task + ".json"), text)
            self.event(task, "done")
            self.done += 1

    def _refuse(self, sentence: str, declined: bool = False) -> None:
        self._leave("refused.json", {"error": sentence, "declined": declined})

    def _write_failure(self, task: str, error: BaseException) -> None:
        process_guard.note(error)
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        reason = reason_of(error)
        if missing:
            reason = f"the package {missing} is not installed in this environment"
            package = missing.partition(".")[0]
            # either a part of a package that is installed, or the whole package
            missing = missing if sys.modules.get(package) is not None else package
        left = {"reason": reason, "missing": missing, "beyond": isinstance(error, BeyondCounter)}
        self._leave(task + ".error.json", left)
        self.event(task, "failed")

    def _meta(self) -> Dict[str, Any]:
        model = self.request.model
        if model is not None:
            self.pair = self._user_pair()
            meta = dict(EMPTY, name=self.pair.name, params=self.pair.params, frameworks=list(model.frameworks))
            meta["points"] = [{"params": self.pair.params, "inputs": [], "layers": []} for _ in self.request.points]
            return meta
        path = self.request.pair
        if self.request.paths:
            import_path.welcome(getcwd(), self.request.paths, "", self.request.known)
        try:
            self.pair = loading.load_pair(path)
            loading.check_names(self.pair, self.request.known)
            described = self._describe(self.request.overrides)
            points = [self._describe(overrides) for overrides, _, _ in self.request.points]
        except pairs.PairError as error:
            return {"error": str(error)}
        except Exception as error:
            process_guard.note(error)
            return {"error": f"the pair file {path} cannot be used: {type(error).__name__}: {first_line(error)}"}
        return dict(
            described,
            name=self.pair.name,
            notes=list(self.pair.notes),
            published=[list(p) for p in self.pair.published],
            doc=introspect.documentation(self.pair.module),
            source=loading.source_hash(path),
            frameworks=self._sides(),
            points=points,
        )

    def _describe(self, overrides: Dict[str, str]) -> Dict[str, Any]:
        """The pair's parameters, inputs and layers with these overrides."""
        params = loading.resolve(self.pair, overrides)
        layers = loading.layers_of(self.pair, pairs.Params(params))
        inputs = _inputs(self.pair, params)
        for name, shape, _ in inputs:
            if any(isinstance(size, int) and size < 0 for size in shape):
                raise pairs.PairError(
                    f"{self.pair.name}: at these settings, its input {name} has the shape {tuple(shape)}, and no size is below 0."
                )
        return {"params": params, "inputs": inputs, "layers": [layer.to_list() for layer in layers]}

    def _sides(self) -> List[str]:
        """The frameworks in which the pair has a model, and the worker's own if it can make one from another's."""
        sides = list(self.pair.frameworks(tuple(self.request.known)))
        if self.framework.name not in sides and self.framework.exports in sides:
            sides.append(self.framework.name)
        return sides

    def _user_pair(self) -> Any:
        """The user's own model as a pair."""
        if self.request.file is None:
            return factory.FactoryPair(self.request, self._adapter())
        reader = importlib.import_module(absolute(self.request.file.reader))
        return reader.FromFile(self.request, self._adapter())


def _inputs(pair: Any, params: Dict[str, Any]) -> List[Any]:
    """The pair's inputs as [name, shape, dtype]; none if it cannot state them, which shows when its models are called."""
    try:
        return [[i.name, list(i.shape), i.dtype] for i in pair.inputs(pairs.Params(params))]
    except Exception as error:
        process_guard.note(error)
        return []


def main(path: str) -> None:
    """Entry point: serve the request in the file at ``path``, and end the process."""
    process_guard.stand_alone()
    with open(path) as file:
        request = from_text(file.read())
    try:
        process_guard.leave(Worker(request).run())
    except BaseException as error:
        process_guard.note(error)
        process_guard.leave(1)
