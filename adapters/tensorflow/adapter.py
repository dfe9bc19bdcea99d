"""The adapter of TensorFlow: recognizes models, takes traces and ledgers from functions and sessions.

Python 3.6, TensorFlow 1.x and later.
"""

import sys
from typing import Any, Callable, Tuple

from ..shared import adapter, keras_model
from ..shared.refusal import CannotCount
from . import model as models


class Adapter(adapter.Adapter):
    """See adapters/shared/adapter.py."""

    own_steps = True

    def before_import(self) -> None:
        """See Adapter.before_import."""
        models.quiet()

    def unusable(self, package: Any) -> str:
        """See Adapter.unusable."""
        if hasattr(package, "function"):
            return ""
        return (
            f"TensorFlow {package.__version__} has no tf.function, which a model without a pair file needs: write one "
            "(see `reconcile zoo new`) and run it with --counter tf.profiler@session."
        )

    def is_model(self, value: Any) -> bool:
        """See Adapter.is_model."""
        import inspect

        return self.is_made(value) or (callable(value) and not inspect.isclass(value))

    def is_made(self, value: Any) -> bool:
        """See Adapter.is_made."""
        import tensorflow as tf

        return isinstance(value, tf.Module) or bool(keras_model.keras_of(value, "Layer"))

    def default_dtype(self) -> str:
        """The floating-point dtype of Keras, as the factory left it."""
        import tensorflow as tf

        return str(tf.keras.backend.floatx())

    def entry(self, model: Any) -> Any:
        """See Adapter.entry."""
        return getattr(model, "call", model)

    def capture(self, request: Any, pair: Any) -> "Capture":
        """See Adapter.capture."""
        return Capture(request, pair)


class Capture(adapter.Capture):
    """See adapters/shared/adapter.py. All counters share one model, because they only read its graphs."""

    model: Any = None

    def trace(self, params: Any) -> Any:
        """See Capture.trace."""
        model = self._model(params)
        if self._by_session():
            return model.trace()
        if self.request.training:
            from .training import trace

            with adapter.blame_model(self.pair, model.run_unrecorded, model.describe_step_call):
                taken = trace(model)
            return self._complete(taken, model)
        from .trace import trace_function

        with adapter.blame_model(self.pair, lambda: model.invoke(model.example()), model.called_with):
            concrete = model.concrete
        taken = trace_function(
            concrete, model.scopes, model.count_runs, model.versions(), model.notes, model.observed_shapes
        )
        self.pair.may_run(taken)
        return self._complete(taken, model)

    def _complete(self, taken: Any, model: Any) -> Any:
        """The trace with the parameters of its layers and the pair's notes."""
        taken = taken._replace(parameters=keras_model.parameters(model.called_model))
        return adapter.add_call_notes(taken, self.pair, model.called_with)

    def ledger(self, take: Callable[[Any], Any], params: Any) -> Any:
        """See Capture.ledger."""
        return take(self._model(params))

    def plain_call(self, params: Any) -> Tuple[Callable[[], Any], str]:
        """See Capture.plain_call."""
        model = self.model = self._make_model(params)
        model.build()
        return lambda: model.invoke(model.example()), model.called_with()

    def _by_session(self) -> bool:
        """Whether a recipe asks for a session of TensorFlow 1 instead of a function."""
        return self.request.recipe not in ("", models.BATCH_OF_ONE)

    def _model(self, params: Any) -> Any:
        if self.model is None:
            self.model = self._make_model(params)
        return self.model

    def _make_model(self, params: Any) -> Any:
        if self._by_session():
            from .session import TfSession

            return TfSession(self.pair, params, self.request.recipe)
        if not self.request.training:
            return models.TfModel(self.pair, params, self.request.recipe)
        if sys.version_info < (3, 10):
            raise CannotCount("a training step of TensorFlow can be traced only in Python 3.10 or later")
        from .training import TrainingModel

        return TrainingModel(self.pair, params, self.request.training, self.request.standard)
