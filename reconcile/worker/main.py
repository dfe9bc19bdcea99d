"""The worker: runs beside a framework, one process per environment, and writes what it learns as JSON files.

Home starts it with a file that holds a request (core/protocol.py).  For every task it appends {"task", "phase"} to
``events.jsonl`` and leaves ``<task>.json`` (a trace or a ledger) or ``<task>.error.json``.  Before any framework is loaded it
leaves ``meta.json`` with what the pair says of itself, or why it cannot be used; a factory is called only then, and what is
wrong with it goes to ``refused.json``.  {"theirs"} among the events says what of the user's own code runs from here on.

Python 3.6 and standard library, plus the framework it serves.
"""

import importlib
import sys
from io import open  # as it is now: what their code makes of these later is their business
from json import dumps
from os import getcwd, getpid, replace
from os import path as paths
from typing import Any, Dict, List

from ..adapters.shared.refusal import FactoryError
from ..core.framework import absolute, adapter_of
from ..core.protocol import TRACE, WorkerRequest, from_text
from ..core.records import to_json
from ..model_zoo import pair as pairs
from . import factory, import_path, introspect, process_guard

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
        # type: (WorkerRequest, Any) -> None
        self.request = request
        self.pair = pair
        self.framework = request.framework
        self.adapter = None  # type: Any
        self.capture = None  # type: Any
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
        with open(paths.join(self.request.out, "events.jsonl"), "a") as file:
            file.write(dumps(said) + "\n")

    def _leave(self, name, data):
        # type: (str, Dict[str, Any]) -> None
        write(paths.join(self.request.out, name), dumps(data))

    def run(self):
        # type: () -> int
        """Serve the request. Returns the exit status: 0, also where single tasks failed."""
        if self.request.lent:
            import_path.borrow(self.request.lent)
        for package, folder in self.request.brought.items():
            import_path.bring(package, folder)
        try:
            meta = self._meta()
            self._leave("meta.json", meta)
            if "error" in meta:
                return 0
            self.event("", "loading")
            self._adapter().before_import()
            self._prepare(meta["params"])
            for task in self.request.tasks:
                self._task(task, meta["params"])
        except FactoryError as error:
            self._refuse(str(error), isinstance(error, factory.Declined))
        return 0

    def _prepare(self, params):
        # type: (Dict[str, Any]) -> None
        """What comes before any counter where the model is the user's own. Raises FactoryError."""
        self.pair.ready(self.request.lacking, self.theirs)
        if self.request.trial:
            call, called_with = self._capture().plain_call(pairs.Params(params))
            self.pair.tried(call, lambda: called_with)

    def _adapter(self):
        # type: () -> Any
        """Raises FactoryError where it cannot be imported, which the framework's absence is the usual reason for."""
        if self.adapter is None:
            try:
                self.adapter = adapter_of(self.framework)
            except ImportError as error:
                process_guard.note(error)
                lacks = (error.name or "").partition(".")[0] == self.framework.package
                why = "the adapter %s cannot be imported: %s." % (self.framework.adapter, first_line(error))
                raise FactoryError(self.request.lacking if lacks else why) from error
        return self.adapter

    def _capture(self):
        # type: () -> Any
        if self.capture is None:  # only now is it known what pair it is
            self.capture = self._adapter().capture(self.request, self.pair)
        return self.capture

    def take(self, task, params):
        # type: (str, Dict[str, Any]) -> Any
        """The trace or ledger of one task. Raises whatever building and running the model raises."""
        if task == TRACE:
            return self._capture().trace(pairs.Params(params))
        module, package = self.request.counters[task]
        counter = importlib.import_module(absolute(module) + ".capture")
        ledger = self._capture().ledger(lambda model: counter.capture(task, model), pairs.Params(params))
        lent = (import_path.LENT,) if import_path.is_lent(package) else ()
        return ledger._replace(notes=ledger.notes + lent)

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
            write(paths.join(self.request.out, task + ".json"), text)
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
        model = self.request.model
        if model is not None:
            self.pair = self._given()
            return dict(EMPTY, name=self.pair.name, params=self.pair.params, frameworks=list(model.frameworks))
        path = self.request.pair
        if self.request.paths:
            import_path.welcome(getcwd(), self.request.paths, "", self.request.known)
        try:
            self.pair = pairs.load_pair(path)
            pairs.check_names(self.pair, self.request.known)
            params = pairs.resolve(self.pair, self.request.overrides)
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
            "layers": [layer.to_list() for layer in layers],
            "notes": list(self.pair.notes),
            "published": [list(p) for p in self.pair.published],
            "doc": introspect.documentation(self.pair.module),
            "source": pairs.source_hash(path),
            "frameworks": list(self.pair.frameworks(tuple(self.request.known))),
        }

    def _given(self):
        # type: () -> Any
        """The user's own model, in the place of a pair."""
        if self.request.file is None:
            return factory.Given(self.request, self._adapter())
        from . import model_file

        return model_file.FromFile(self.request, self._adapter())


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
        request = from_text(file.read())
    try:
        process_guard.leave(Worker(request).run())
    except BaseException as error:
        process_guard.note(error)
        process_guard.leave(1)
