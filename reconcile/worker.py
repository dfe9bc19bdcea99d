"""The worker: runs beside a framework, one process per environment, and writes what it finds as JSON files.

Started by runner.py with a request file: {framework, pair, overrides, tasks, device, out}; where somebody gives a model by
a function of their own (given.py), {factories, inputs, name, said} stand in place of the pair and its overrides, and
{files} where by a file (given_file.py).  For every
task it appends {"task", "phase"} to ``events.jsonl`` and leaves ``<task>.json`` (a trace or a ledger) or
``<task>.error.json``.  Before any framework is loaded it leaves ``meta.json`` with what the pair says of itself, or why it
cannot be used; a factory is called only then, and what is wrong with it goes to ``refused.json``.

Python 3.6 and standard library, plus the framework it serves.
"""

import json
import os
import sys
import threading
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import given
from .model_zoo import pair as pairs
from .records import CALLED_WITH, to_json

TRACE = "trace"
PACKAGES = {"tf": "tensorflow", "torch": "torch", "onnx": "onnx"}
TITLES = {"tf": "TensorFlow", "torch": "PyTorch", "onnx": "ONNX"}
EMPTY = {"layers": [], "notes": [], "published": [], "doc": "", "source": ""}
"""What a pair file says of itself and a factory does not."""


def write(path, text):
    # type: (str, str) -> None
    """Write a whole file or none."""
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)


class Worker(object):
    """One request, task by task."""

    def __init__(self, request, pair=None):
        # type: (Dict[str, Any], Any) -> None
        self.request = request
        self.pair = pair
        self.out = request["out"]
        self.framework = request["framework"]
        self.model = None  # type: Any
        self.done = 0

    def event(self, task, phase):
        # type: (str, str) -> None
        """Tell the runner where we are."""
        with open(os.path.join(self.out, "events.jsonl"), "a") as file:
            file.write(json.dumps({"task": task, "phase": phase}) + "\n")

    def run(self):
        # type: () -> int
        """Serve the request. Returns the exit status: 0, also where single tasks failed."""
        meta = self._meta()
        write(os.path.join(self.out, "meta.json"), json.dumps(meta))
        if "error" in meta:
            return 0
        self.event("", "loading")
        if self.framework == "tf":
            from .adapters import tf_model

            tf_model.quiet()
        for task in self.request["tasks"]:
            self.event(task, "started")
            try:
                text = to_json(self._taken(task, meta["params"]))
                write(os.path.join(self.out, task + ".json"), text)
                self.event(task, "done")
                self.done += 1
            except given.FactoryError as error:
                if not self.done:
                    self._refuse(str(error))
                    return 0
                self._failed(task, error)
            except Exception as error:
                self._failed(task, error)
        return 0

    def _taken(self, task, params):
        # type: (str, Dict[str, Any]) -> Any
        if task == TRACE and hasattr(self.pair, "impatiently"):
            with self.pair.impatiently(self._refuse):
                return self.take(task, params)
        return self.take(task, params)

    def _refuse(self, sentence):
        # type: (str) -> None
        write(os.path.join(self.out, "refused.json"), json.dumps({"error": sentence}))

    def _failed(self, task, error):
        # type: (str, Exception) -> None
        traceback.print_exc()
        missing = isinstance(error, ModuleNotFoundError) and getattr(error, "name", None)
        reason = "%s: %s" % (type(error).__name__, first_line(error))
        if missing:
            reason = "the package %s is not installed in this environment" % error.name  # type: ignore[attr-defined]
        found = {"reason": reason, "missing": missing or ""}
        write(os.path.join(self.out, task + ".error.json"), json.dumps(found))
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
        try:
            self.pair = pairs.load_pair(path)
            said = self.pair.PAIR
            params = pairs.resolve(said, self.request["overrides"])
            layers = pairs.layers_of(self.pair, params)
        except pairs.PairError as error:
            return {"error": str(error)}
        except Exception as error:
            traceback.print_exc()
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
            raise given.FactoryError(str(error)) from error

    def _tf(self, task, params):
        # type: (str, pairs.Params) -> Any
        from .adapters import tf_model

        recipe = self.request["recipe"]
        if recipe not in ("", tf_model.BATCH_OF_ONE):
            return self._session(task, params)
        if self.model is None:
            self.model = tf_model.TfModel(self.pair, params, recipe)
        if task == TRACE:
            from .adapters import trace_tf

            model = self.model
            with trying(self.pair, lambda: model.invoke(model.example()), model.called_with):
                concrete = model.concrete
            notes = model.notes + called(self.pair, model)
            found = trace_tf.trace_function(
                concrete, model.scopes, model.fetch, tf_model.versions(), notes, model.observed
            )
            if hasattr(self.pair, "may_run"):
                self.pair.may_run(found)
            return found
        return capture(task, self.model)

    def _session(self, task, params):
        # type: (str, pairs.Params) -> Any
        from .adapters import tf_session

        if self.model is None:
            self.model = tf_session.TfSession(self.pair, params, self.request["recipe"])
        return self.model.trace() if task == TRACE else capture(task, self.model)

    def _torch(self, task, params):
        # type: (str, pairs.Params) -> Any
        from .adapters import torch_model

        model = torch_model.TorchModel(self.pair, params, self.request["device"])
        if task == TRACE:
            from .adapters import trace_torch

            with trying(self.pair, lambda: torch_model.run(model), model.called_with):
                found = trace_torch.trace(model)
            return found._replace(notes=found.notes + called(self.pair, model))
        return capture(task, model)


@contextmanager
def trying(pair, call, inputs):
    # type: (Any, Callable[[], Any], Callable[[], str]) -> Iterator[None]
    """If what follows fails on somebody's own model, see whether a plain call does so, too: that is theirs to mend."""
    try:
        yield
    except given.FactoryError:
        raise
    except Exception:
        if isinstance(pair, given.Given):
            pair.tried(call, inputs())
        raise


def _inputs(pair, params):
    # type: (Any, Dict[str, Any]) -> List[Any]
    """The pair's inputs as [name, shape, dtype]; none if it cannot say, which shows when its models are called."""
    try:
        return [[i.name, list(i.shape), i.dtype] for i in pair.inputs(pairs.Params(params))]
    except Exception:
        traceback.print_exc()
        return []


def called(pair, model):
    # type: (Any, Any) -> Tuple[str, ...]
    """What somebody's own model was called with, for the report."""
    return (CALLED_WITH + model.called_with(),) if isinstance(pair, given.Given) else ()


def capture(counter, model):
    # type: (str, Any) -> Any
    """Run one counter's capture."""
    import importlib

    from .adapters import COUNTERS

    module = importlib.import_module(".adapters.%s.capture" % COUNTERS[counter].folder, __package__)
    return module.capture(counter, model)


def first_line(error):
    # type: (BaseException) -> str
    """The error's first line, not too long."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""


def stop_with_parent():
    # type: () -> None
    """End this process when whoever started it is gone: its end of our standard input closes."""

    def watch():
        # type: () -> None
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(path):
    # type: (str) -> int
    """Entry point: serve the request in the file at ``path``."""
    stop_with_parent()
    with open(path) as file:
        request = json.load(file)
    code = Worker(request).run()
    if "factories" in request:  # processes that the user's code left behind are not waited for
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
