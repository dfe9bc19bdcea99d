"""The worker: runs beside a framework, one process per environment, and writes what it finds as JSON files.

Started by runner.py with a request file: {framework, pair, overrides, tasks, device, out, training} (the optimiser of a
training step, '' for a call); where somebody gives a model by
a function of their own (factory.py), {factories, inputs, name, said} stand in place of the pair and its overrides, and
{files} where by a file (model_file.py).  For every
task it appends {"task", "phase"} to ``events.jsonl`` and leaves ``<task>.json`` (a trace or a ledger) or
``<task>.error.json``.  Before any framework is loaded it leaves ``meta.json`` with what the pair says of itself, or why it
cannot be used; a factory is called only then, and what is wrong with it goes to ``refused.json``.  {"theirs"} among the
events says what of the user's own runs from here on; with ``trial`` in the request their model is called by itself first.

Python 3.6 and standard library, plus the framework it serves.
"""

import sys
from io import open  # as it is now: what their code makes of these later is their business
from json import dumps, load
from os import getcwd, getpid, replace
from os import path as paths
from typing import Any, Dict, List

from ..adapters.shared.refusal import FactoryError
from ..core.records import to_json
from ..model_zoo import pair as pairs
from . import factory, introspect, process_guard
from . import import_path as theirs
from .capture import TRACE, Taker

PACKAGES = {"tf": "tensorflow", "torch": "torch", "onnx": "onnx"}
EMPTY = {"layers": [], "notes": [], "published": [], "doc": "", "source": ""}
"""What a pair file says of itself and a factory does not."""


def write(path, text):
    # type: (str, str) -> None
    """Write a whole file or none."""
    with open(path + ".part", "w") as file:
        file.write(text)
    replace(path + ".part", path)


class Worker(object):
    """One request, task by task."""

    def __init__(self, request, pair=None):
        # type: (Dict[str, Any], Any) -> None
        self.request = request
        self.pair = pair
        self.out = request["out"]
        self.framework = request["framework"]
        self.taker = None  # type: Any
        self.done = 0

    def event(self, task, phase):
        # type: (str, str) -> None
        """Tell the runner where we are."""
        self._tell({"task": task, "phase": phase})

    def theirs(self, what):
        # type: (str) -> None
        """Tell the runner what of the user's own code runs now; '' if it is none any more."""
        self._tell({"theirs": what})

    def _tell(self, said):
        # type: (Dict[str, str]) -> None
        with open(paths.join(self.out, "events.jsonl"), "a") as file:
            file.write(dumps(said) + "\n")

    def _leave(self, name, data):
        # type: (str, Dict[str, Any]) -> None
        write(paths.join(self.out, name), dumps(data))

    def run(self):
        # type: () -> int
        """Serve the request. Returns the exit status: 0, also where single tasks failed."""
        if self.request["lent"]:
            theirs.borrow(self.request["lent"])
        meta = self._meta()
        self._leave("meta.json", meta)
        if "error" in meta:
            return 0
        self.event("", "loading")
        if self.framework == "tf":
            from ..adapters.tensorflow import model as tf_model

            tf_model.quiet()
        try:
            self._prepare(meta["params"])
            for task in self.request["tasks"]:
                self._task(task, meta["params"])
        except FactoryError as error:
            self._refuse(str(error), isinstance(error, factory.Declined))
        return 0

    def _prepare(self, params):
        # type: (Dict[str, Any]) -> None
        """What comes before any counter where the model is the user's own. Raises FactoryError."""
        self.pair.ready(PACKAGES[self.framework], self.request["lacking"], self.theirs)
        if self.request["trial"]:
            call, inputs = self._taker().plain_call(pairs.Params(params))
            self.pair.tried(call, lambda: inputs)

    def _taker(self):
        # type: () -> Taker
        if self.taker is None:  # only now is it known what pair it is
            self.taker = Taker(self.request, self.pair)
        return self.taker

    def take(self, task, params):
        # type: (str, Dict[str, Any]) -> Any
        """The trace or ledger of one task. Raises whatever building and running the model raises."""
        return self._taker().take(task, pairs.Params(params))

    def _task(self, task, params):
        # type: (str, Dict[str, Any]) -> None
        """One task. Raises FactoryError if nothing was done before it: what is wrong then is wrong for all."""
        self.event(task, "started")
        process = getpid()
        try:
            text = to_json(self._taken(task, params))
        except FactoryError as error:
            if not self.done:
                raise
            self._failed(task, error)
        except BaseException as error:  # sys.exit as well: what is left can do without
            process_guard.only(process)
            self._failed(task, error)
        else:
            process_guard.only(process)
            write(paths.join(self.out, task + ".json"), text)
            self.event(task, "done")
            self.done += 1

    def _taken(self, task, params):
        # type: (str, Dict[str, Any]) -> Any
        if task == TRACE:
            with self.pair.impatiently(self._refuse):
                return self.take(task, params)
        return self.take(task, params)

    def _refuse(self, sentence, declined=False):
        # type: (str, bool) -> None
        self._leave("refused.json", {"error": sentence, "declined": declined})

    def _failed(self, task, error):
        # type: (str, BaseException) -> None
        process_guard.note(error)
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        reason = "%s: %s" % (type(error).__name__, first_line(error))
        if missing:
            reason = "the package %s is not installed in this environment" % missing
            package = missing.partition(".")[0]
            missing = (
                missing if sys.modules.get(package) is not None else package
            )  # a part of one that is there, or all of it
        self._leave(task + ".error.json", {"reason": reason, "missing": missing})
        self.event(task, "failed")

    def _meta(self):
        # type: () -> Dict[str, Any]
        if "factories" in self.request:
            if self.framework in self.request.get("files", {}):
                from . import model_file

                self.pair = model_file.FromFile(self.framework, self.request)
            else:
                self.pair = factory.Given(self.framework, self.request)
            return dict(EMPTY, name=self.pair.name, params=self.pair.params, frameworks=list(self.request["factories"]))
        path = self.request["pair"]
        if self.request["paths"]:
            theirs.welcome(getcwd(), self.request["paths"], "")
        try:
            self.pair = pairs.load_pair(path)
            pairs.check_names(self.pair, PACKAGES)
            params = pairs.resolve(self.pair, self.request["overrides"])
            layers = tuple(self.pair.layers_for(pairs.Params(params)))
        except pairs.PairError as error:
            return {"error": str(error)}
        except Exception as error:
            process_guard.note(error)
            return {
                "error": "the pair file %s cannot be used: %s: %s" % (path, type(error).__name__, first_line(error))
            }
        return {
            "name": self.pair.name,
            "params": params,
            "inputs": _inputs(self.pair, params),
            "layers": [list(layer) for layer in layers],
            "notes": list(self.pair.notes),
            "published": [list(p) for p in self.pair.published],
            "doc": introspect.documentation(self.pair.module),
            "source": pairs.source_hash(path),
            "frameworks": list(self.pair.frameworks(tuple(PACKAGES))),
        }


def _inputs(pair, params):
    # type: (Any, Dict[str, Any]) -> List[Any]
    """The pair's inputs as [name, shape, dtype]; none if it cannot say, which shows when its models are called."""
    try:
        return [[i.name, list(i.shape), i.dtype] for i in pair.inputs(pairs.Params(params))]
    except Exception as error:
        process_guard.note(error)
        return []


def first_line(error):
    # type: (BaseException) -> str
    """The error's first line, not too long."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""


def main(path):
    # type: (str) -> None
    """Entry point: serve the request in the file at ``path``, and end the process."""
    process_guard.stand_alone()
    with open(path) as file:
        request = load(file)
    try:
        process_guard.leave(Worker(request).run())
    except BaseException as error:
        process_guard.note(error)
        process_guard.leave(1)
