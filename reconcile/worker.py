"""The worker: runs beside a framework, one process per environment, and writes what it finds as JSON files.

Started by runner.py with a request file: {framework, pair, overrides, tasks, device, out, training} (the optimiser of a
training step, '' for a call); where somebody gives a model by
a function of their own (given.py), {factories, inputs, name, said} stand in place of the pair and its overrides, and
{files} where by a file (given_file.py).  For every
task it appends {"task", "phase"} to ``events.jsonl`` and leaves ``<task>.json`` (a trace or a ledger) or
``<task>.error.json``.  Before any framework is loaded it leaves ``meta.json`` with what the pair says of itself, or why it
cannot be used; a factory is called only then, and what is wrong with it goes to ``refused.json``.  {"theirs"} among the
events says what of the user's own runs from here on; with ``trial`` in the request their model is called by itself first.

Python 3.6 and standard library, plus the framework it serves.
"""

import sys
from contextlib import contextmanager
from io import open  # as it is now: what their code makes of these later is their business
from json import dumps, load
from os import getcwd, getpid, replace
from os import path as paths
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import given, guard, theirs
from .adapters import torch_room
from .adapters.refusal import FactoryError
from .model_zoo import pair as pairs
from .records import CALLED_WITH, to_json

TRACE = "trace"
PACKAGES = {"tf": "tensorflow", "torch": "torch", "onnx": "onnx"}
TITLES = {"tf": "TensorFlow", "torch": "PyTorch", "onnx": "ONNX"}
LENT = "not installed in that environment; lent, as it is here, by the one that reconcile runs in"
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
        self.model = None  # type: Any
        self.room = None  # type: Any
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
            from .adapters import tf_model

            tf_model.quiet()
        try:
            self._prepare(meta["params"])
            for task in self.request["tasks"]:
                self._task(task, meta["params"])
        except FactoryError as error:
            self._refuse(str(error), isinstance(error, given.Declined))
        return 0

    def _prepare(self, params):
        # type: (Dict[str, Any]) -> None
        """What comes before any counter where the model is the user's own. Raises FactoryError."""
        if not isinstance(self.pair, given.Given):
            return
        self.pair.doing = self.theirs
        self.pair.ready(PACKAGES[self.framework], self.request["lacking"])
        if self.request["trial"]:
            call, inputs = self._plain_call(pairs.Params(params))
            self.pair.tried(call, inputs)

    def _plain_call(self, params):
        # type: (pairs.Params) -> Tuple[Callable[[], Any], str]
        """A call of the model with no counter near, and what it is called with."""
        if self.framework == "tf":
            from .adapters import tf_model

            model = self.model = self._tf_model(params)
            model.build()
            return lambda: model.invoke(model.example()), model.called_with()
        from .adapters import torch_model

        plain = torch_model.TorchModel(self.pair, params, room=self._room())
        with fitting(self.pair):
            module = plain.build("cpu")
        return lambda: torch_model.call(module, plain.example("cpu")), plain.called_with()

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
            guard.only(process)
            self._failed(task, error)
        else:
            guard.only(process)
            write(paths.join(self.out, task + ".json"), text)
            self.event(task, "done")
            self.done += 1

    def _taken(self, task, params):
        # type: (str, Dict[str, Any]) -> Any
        if task == TRACE and hasattr(self.pair, "impatiently"):
            with self.pair.impatiently(self._refuse):
                return self.take(task, params)
        return self.take(task, params)

    def _refuse(self, sentence, declined=False):
        # type: (str, bool) -> None
        self._leave("refused.json", {"error": sentence, "declined": declined})

    def _failed(self, task, error):
        # type: (str, BaseException) -> None
        guard.note(error)
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
                from . import given_file

                self.pair = given_file.FromFile(self.framework, self.request)
            else:
                self.pair = given.Given(self.framework, self.request)
            said = self.pair.PAIR
            return dict(EMPTY, name=said.name, params=said.params, frameworks=list(self.request["factories"]))
        path = self.request["pair"]
        if self.request["paths"]:
            theirs.welcome(getcwd(), self.request["paths"], "")
        try:
            self.pair = pairs.load_pair(path)
            said = self.pair.PAIR
            params = pairs.resolve(said, self.request["overrides"])
            layers = pairs.layers_of(self.pair, params)
        except pairs.PairError as error:
            return {"error": str(error)}
        except Exception as error:
            guard.note(error)
            return {
                "error": "the pair file %s cannot be used: %s: %s" % (path, type(error).__name__, first_line(error))
            }
        return {
            "name": said.name,
            "params": params,
            "inputs": _inputs(self.pair, params),
            "layers": [list(layer) for layer in layers],
            "notes": list(said.notes),
            "published": [list(p) for p in said.published],
            "doc": self.pair.__doc__ or "",
            "source": pairs.source_hash(path),
            "frameworks": [name for name in PACKAGES if hasattr(self.pair, "build_" + name)],
        }

    def take(self, task, params):
        # type: (str, Dict[str, Any]) -> Any
        """The trace or ledger of one task. Raises whatever building and running the model raises."""
        takers = {"tf": self._tf, "torch": self._torch, "onnx": self._onnx}
        return takers[self.framework](task, pairs.Params(params))

    def _onnx(self, _task, params):
        # type: (str, pairs.Params) -> Any
        """The trace: no counter of ONNX models is known, and the model is not run."""
        from .adapters import model_file, trace_onnx

        model = self.pair.build_onnx(params)
        positional = self.pair.arguments()[0]
        inputs = ", ".join("%s=%s %s" % (i.name, i.dtype, tuple(i.shape)) for i in positional)
        try:
            return trace_onnx.trace(model, ("called with %s" % (inputs or "no input"),))
        except model_file.FileError as error:
            raise FactoryError(str(error)) from error

    def _tf(self, task, params):
        # type: (str, pairs.Params) -> Any
        from .adapters import tf_model

        recipe = self.request["recipe"]
        if recipe not in ("", tf_model.BATCH_OF_ONE):
            return self._session(task, params)
        if self.model is None:
            self.model = self._tf_model(params)
        if task == TRACE and self.request.get("training"):
            from .adapters import tf_training

            model = self.model
            with trying(self.pair, lambda: model.invoke(model.example()), model.called_with):
                found = tf_training.trace(model)
            return found._replace(notes=found.notes + called(self.pair, model))
        if task == TRACE:
            from .adapters import trace_tf

            model = self.model
            with trying(self.pair, lambda: model.invoke(model.example()), model.called_with):
                concrete = model.concrete
            notes = model.notes + called(self.pair, model)
            found = trace_tf.trace_function(
                concrete, model.scopes, model.fetch, model.versions(), notes, model.observed
            )
            if hasattr(self.pair, "may_run"):
                self.pair.may_run(found)
            return found
        return capture(task, self.model)

    def _tf_model(self, params):
        # type: (pairs.Params) -> Any
        if self.request.get("training"):
            if sys.version_info < (3, 10):
                raise RuntimeError("a training step of TensorFlow is traced in Python 3.10 or later alone")
            from .adapters import tf_training

            return tf_training.TrainingModel(self.pair, params, self.request["training"])
        from .adapters import tf_model

        return tf_model.TfModel(self.pair, params, self.request["recipe"])

    def _session(self, task, params):
        # type: (str, pairs.Params) -> Any
        from .adapters import tf_session

        if self.model is None:
            self.model = tf_session.TfSession(self.pair, params, self.request["recipe"])
        return self.model.trace() if task == TRACE else capture(task, self.model)

    def _room(self):
        # type: () -> Any
        """What is known of the model's need for memory; None for a file, whose memory is limited where it is loaded."""
        if self.room is None and self.framework not in self.request.get("files", {}):
            self.room = torch_room.Room()
        return self.room

    def _torch(self, task, params):
        # type: (str, pairs.Params) -> Any
        from .adapters import torch_model

        model = torch_model.TorchModel(self.pair, params, self.request["device"], self._room())
        model.training = self.request.get("training", "")
        with fitting(self.pair):
            return self._of_torch(task, model)

    def _of_torch(self, task, model):
        # type: (str, Any) -> Any
        from .adapters import torch_model

        if task == TRACE:
            if model.training:
                from .adapters.trace_torch_training import trace
            else:
                from .adapters.trace_torch import trace
            with trying(self.pair, lambda: torch_model.run(model), model.called_with):
                found = trace(model, self.request.get("died", ""))
            return found._replace(notes=found.notes + called(self.pair, model))
        spared = model.spare()
        ledger = capture(task, model)
        return ledger._replace(notes=ledger.notes + spared)


@contextmanager
def trying(pair, call, inputs):
    # type: (Any, Callable[[], Any], Callable[[], str]) -> Iterator[None]
    """If what follows fails on somebody's own model, see whether a plain call does so, too: that is theirs to mend."""
    try:
        yield
    except (FactoryError, torch_room.NoRoom):
        raise
    except BaseException:
        if isinstance(pair, given.Given):
            pair.tried(call, inputs())
        raise


@contextmanager
def fitting(pair):
    # type: (Any) -> Iterator[None]
    """What does not fit into memory is the input's fault: FactoryError, in a sentence."""
    try:
        yield
    except torch_room.NoRoom as error:
        raise FactoryError("the model %s does not fit into memory: %s." % (pair.PAIR.name, error)) from error


def _inputs(pair, params):
    # type: (Any, Dict[str, Any]) -> List[Any]
    """The pair's inputs as [name, shape, dtype]; none if it cannot say, which shows when its models are called."""
    try:
        return [[i.name, list(i.shape), i.dtype] for i in pair.inputs(pairs.Params(params))]
    except Exception as error:
        guard.note(error)
        return []


def called(pair, model):
    # type: (Any, Any) -> Tuple[str, ...]
    """What somebody's own model was called with, for the report."""
    return (CALLED_WITH + model.called_with(),) + pair.notes if isinstance(pair, given.Given) else ()


def capture(counter, model):
    # type: (str, Any) -> Any
    """Run one counter's capture."""
    import importlib

    from .adapters import COUNTERS

    package = COUNTERS[counter].folder
    ledger = importlib.import_module(".adapters.%s.capture" % package, __package__).capture(counter, model)
    return ledger._replace(notes=ledger.notes + (LENT,)) if theirs.is_lent(package) else ledger


def first_line(error):
    # type: (BaseException) -> str
    """The error's first line, not too long."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""


def main(path):
    # type: (str) -> None
    """Entry point: serve the request in the file at ``path``, and end the process."""
    guard.stand_alone()
    with open(path) as file:
        request = load(file)
    try:
        guard.leave(Worker(request).run())
    except BaseException as error:
        guard.note(error)
        guard.leave(1)
