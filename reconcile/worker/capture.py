"""Taking a trace or a ledger, in each framework: what a worker does for one task, and a caller's own process for a live model.

Python 3.6 and standard library, plus the framework it serves.
"""

import sys
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Tuple

from ..adapters.pytorch import memory as torch_room
from ..adapters.shared.refusal import FactoryError
from ..model_zoo import pair as pairs
from . import import_path

TRACE = "trace"
LENT = "not installed in that environment; lent, as it is here, by the one that reconcile runs in"


class Taker(object):
    """What takes traces and ledgers of one pair, in one framework; the request is that of the worker (main.py)."""

    def __init__(self, request, pair):
        # type: (Dict[str, Any], Any) -> None
        self.request = request
        self.pair = pair
        self.framework = request["framework"]
        self.model = None  # type: Any
        self.room = None  # type: Any

    def take(self, task, params):
        # type: (str, pairs.Params) -> Any
        """The trace or ledger of one task. Raises whatever building and running the model raises."""
        takers = {"tf": self._tf, "torch": self._torch, "onnx": self._onnx}
        return takers[self.framework](task, params)

    def plain_call(self, params):
        # type: (pairs.Params) -> Tuple[Callable[[], Any], str]
        """A call of the model with no counter near, and what it is called with."""
        if self.framework == "tf":
            from ..adapters.tensorflow import model as tf_model

            model = self.model = self._tf_model(params)
            model.build()
            return lambda: model.invoke(model.example()), model.called_with()
        from ..adapters.pytorch import model as torch_model

        plain = torch_model.TorchModel(self.pair, params, room=self._room())
        with fitting(self.pair):
            module = plain.build("cpu")
        return lambda: torch_model.call(module, plain.example("cpu")), plain.called_with()

    def _onnx(self, _task, params):
        # type: (str, pairs.Params) -> Any
        """The trace: no counter of ONNX models is known, and the model is not run."""
        from ..adapters.onnx import trace as trace_onnx
        from ..adapters.shared import model_file

        model = self.pair.build_onnx(params)
        positional = self.pair.arguments(params)[0]
        inputs = ", ".join("%s=%s %s" % (i.name, i.dtype, tuple(i.shape)) for i in positional)
        try:
            return trace_onnx.trace(model, ("called with %s" % (inputs or "no input"),))
        except model_file.FileError as error:
            raise FactoryError(str(error)) from error

    def _tf(self, task, params):
        # type: (str, pairs.Params) -> Any
        from ..adapters.tensorflow import model as tf_model

        recipe = self.request["recipe"]
        if recipe not in ("", tf_model.BATCH_OF_ONE):
            return self._session(task, params)
        if self.model is None:
            self.model = self._tf_model(params)
        if task == TRACE and self.request.get("training"):
            from ..adapters.tensorflow import training as tf_training

            model = self.model
            with trying(self.pair, lambda: model.invoke(model.example()), model.called_with):
                found = tf_training.trace(model)
            return found._replace(notes=found.notes + self.pair.called_notes(model.called_with))
        if task == TRACE:
            from ..adapters.tensorflow import trace as trace_tf

            model = self.model
            with trying(self.pair, lambda: model.invoke(model.example()), model.called_with):
                concrete = model.concrete
            notes = model.notes + self.pair.called_notes(model.called_with)
            found = trace_tf.trace_function(
                concrete, model.scopes, model.fetch, model.versions(), notes, model.observed
            )
            self.pair.may_run(found)
            return found
        return capture(task, self.model)

    def _tf_model(self, params):
        # type: (pairs.Params) -> Any
        if self.request.get("training"):
            if sys.version_info < (3, 10):
                raise RuntimeError("a training step of TensorFlow is traced in Python 3.10 or later alone")
            from ..adapters.tensorflow import training as tf_training

            return tf_training.TrainingModel(self.pair, params, self.request["training"])
        from ..adapters.tensorflow import model as tf_model

        return tf_model.TfModel(self.pair, params, self.request["recipe"])

    def _session(self, task, params):
        # type: (str, pairs.Params) -> Any
        from ..adapters.tensorflow import session as tf_session

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
        from ..adapters.pytorch import model as torch_model

        model = torch_model.TorchModel(self.pair, params, self.request["device"], self._room())
        model.training = self.request.get("training", "")
        with fitting(self.pair):
            return self._of_torch(task, model)

    def _of_torch(self, task, model):
        # type: (str, Any) -> Any
        from ..adapters.pytorch import model as torch_model

        if task == TRACE:
            if model.training:
                from ..adapters.pytorch.training import trace
            else:
                from ..adapters.pytorch.trace import trace
            with trying(self.pair, lambda: torch_model.run(model), model.called_with):
                found = trace(model, self.request.get("died", ""))
            return found._replace(notes=found.notes + self.pair.called_notes(model.called_with))
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
        pair.tried(call, inputs)
        raise


@contextmanager
def fitting(pair):
    # type: (Any) -> Iterator[None]
    """What does not fit into memory is the input's fault: FactoryError, in a sentence."""
    try:
        yield
    except torch_room.NoRoom as error:
        raise FactoryError("the model %s does not fit into memory: %s." % (pair.name, error)) from error


def capture(counter, model):
    # type: (str, Any) -> Any
    """Run one counter's capture."""
    import importlib

    from ..adapters import COUNTERS

    package = COUNTERS[counter].folder
    ledger = importlib.import_module("..adapters.counters.%s.capture" % package, __package__).capture(counter, model)
    return ledger._replace(notes=ledger.notes + (LENT,)) if import_path.is_lent(package) else ledger
