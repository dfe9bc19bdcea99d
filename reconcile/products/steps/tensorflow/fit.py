"""Follows ``fit`` of Keras 3 on TensorFlow: ``reconcile watch`` takes the batch of one step (``FitRecorder``), and
``FitBatches`` reports every batch of one ``fit``.
The trainer of Keras makes one function for each model, and ``fit`` and ``train_on_batch`` call it with an iterator of batches.
This module is imported while Keras may still be loading: it imports no framework before a step runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....adapters.tensorflow.targets import Batch

FIT_NOT_CALLED = (
    "it called fit of Keras %s. A loop of your own with tf.GradientTape is not watched: compile the model and count it with "
    "reconcile run --tf and --pass training"
)
NO_RANGE_OF_STEPS = "a range of steps is not for fit, whose steps are counted one by one: give one, such as --steps 1"
NO_CALLS_IN_FIT = "--calls is not for a model that Keras trains: name its step with --steps"
OWN_FUNCTION = "%s overrides make_train_function, so a call of its train_step need not be what runs: it is not counted"
SEVERAL_REPLICAS = "%s trains on %d replicas at once, and only a step on one device is counted"


def watch(trainer: Any, nested: tuple[Any, ...], steps: tuple[int, int], call: int, done: Callable[[Any], None]) -> Any:
    """See Framework.watched: ``done`` gets the model and a batch."""
    return FitRecorder(trainer, steps, call, done)


class FitRecorder:
    """``done`` gets (model, batch) before the requested step; called with None, it ends the program without a count."""

    def __init__(self, module: Any, steps: tuple[int, int], call: int, done: Callable[[Any], None]) -> None:
        self.wanted, self.done = steps[0], done
        self.why_not_counted = NO_CALLS_IN_FIT if call else NO_RANGE_OF_STEPS if steps[0] != steps[1] else ""
        self.fit_calls = self.steps = self.open_fit_calls = 0
        self.refusal = ""
        self.finished = False
        self.trainer = module.TensorFlowTrainer
        self._watch_fit(self.trainer.fit)
        self._watch_functions(self.trainer.make_train_function)

    def _watch_fit(self, fit: Any) -> None:
        @functools.wraps(fit)
        def run_fit(model: Any, *arguments: Any, **named: Any) -> Any:
            self.fit_calls += 1
            self.open_fit_calls += 1
            self._check(model)
            try:
                return fit(model, *arguments, **named)
            finally:
                self.open_fit_calls -= 1

        self.trainer.fit = run_fit

    def _watch_functions(self, make: Any) -> None:
        @functools.wraps(make)
        def make_function(model: Any, *arguments: Any, **named: Any) -> Any:
            made = make(model, *arguments, **named)
            function = model.train_function
            if not isinstance(function, WatchedTrainFunction):
                model.train_function = WatchedTrainFunction(self, model, function)
            return made

        self.trainer.make_train_function = make_function

    def _check(self, model: Any) -> None:
        """End the program where its step cannot be counted."""
        if self.finished:
            return
        name, replicas = type(model).__name__, model.distribute_strategy.num_replicas_in_sync
        if self.why_not_counted:
            self.refusal = self.why_not_counted
        elif type(model).make_train_function is not self.trainer.make_train_function:
            self.refusal = OWN_FUNCTION % name
        elif replicas > 1:
            self.refusal = SEVERAL_REPLICAS % (name, replicas)
        if self.refusal:
            self.done(None)

    def run_train_function(self, model: Any, function: Any, iterator: Any) -> Any:
        """The model's train function is called: for ``steps_per_execution`` batches, or as many as are left."""
        if self.finished:
            return function(iterator)
        self._check(model)
        each = int(model.steps_per_execution)
        if each == 1 and self.steps + 1 < self.wanted:
            logs = function(iterator)
            self.steps += 1
            return logs
        batches = [data for _, data in zip(range(each), iterator, strict=False)]
        if not batches:
            raise StopIteration
        place = self.wanted - self.steps - 1
        if place < len(batches):
            self.finished = True
            by = "fit" if self.open_fit_calls else "train_on_batch"
            self.done((model, Batch(_without_empty_optionals(batches[place]), self.wanted, by)))
        logs = function(_replay(batches, iterator))
        self.steps += len(batches)
        return logs

    def summary(self) -> dict[str, Any]:
        """Counts so far, for a program that ended before the requested step."""
        no_step_note = "" if self.steps else FIT_NOT_CALLED % (f"{self.fit_calls} time" + "s" * (self.fit_calls != 1))
        return {"calls": 0, "steps": self.steps, "below": self.refusal, "without": no_step_note}


class WatchedTrainFunction:
    """A model's train function, watched."""

    def __init__(self, watch: FitRecorder, model: Any, function: Any) -> None:
        self.watch, self.model, self.function = watch, model, function

    def __call__(self, iterator: Any) -> Any:
        """See FitRecorder.run_train_function."""
        return self.watch.run_train_function(self.model, self.function, iterator)


class FitBatches:
    """The batches of a model's ``fit``, which has just begun: ``on_batch`` gets the model, the shapes of each batch, and a
    function that returns it, or None for one that has run. ``why_not_counted`` says why they cannot be followed."""

    def __init__(self, model: Any, on_batch: Callable[..., None]) -> None:
        self.model, self.on_batch, self.function = model, on_batch, model.train_function
        self.why_not_counted = _why_not_counted(model)
        self._fixed_shapes: tuple[str, ...] = ()  # the shapes of every batch of an iterator whose shapes are fixed
        self._fixed_spec: Any = None
        if not self.why_not_counted:
            model.train_function = self._run_train_function

    def _run_train_function(self, iterator: Any) -> Any:
        """The train function is called."""
        each = int(self.model.steps_per_execution)
        if each == 1 and self._fixed_spec is not None and getattr(iterator, "element_spec", None) == self._fixed_spec:
            logs = self.function(iterator)
            self.on_batch(self.model, self._fixed_shapes, None)
            return logs
        batches = [data for _, data in zip(range(each), iterator, strict=False)]
        if not batches:
            raise StopIteration
        for data in batches:
            present = _without_empty_optionals(data)
            shapes = _shapes(present)
            self.on_batch(self.model, shapes, functools.partial(Batch, present))
        kind = getattr(iterator, "element_spec", None)
        if kind is not None and _has_fixed_shapes(kind):
            self._fixed_spec, self._fixed_shapes = kind, shapes
        return self.function(_replay(batches, iterator))

    def close(self) -> None:
        """The training is done."""
        if self.model.train_function == self._run_train_function:
            self.model.train_function = self.function


def _why_not_counted(model: Any) -> str:
    import keras

    name, replicas = type(model).__name__, model.distribute_strategy.num_replicas_in_sync
    own = next(base for base in type(model).__mro__ if "make_train_function" in vars(base))
    if own.__module__.partition(".")[0] != keras.__name__:
        return OWN_FUNCTION % name
    return SEVERAL_REPLICAS % (name, replicas) if replicas > 1 else ""


def _shapes(data: Any) -> tuple[str, ...]:
    """``float32 (8, 64)`` of each tensor of a batch."""
    import tensorflow as tf

    return tuple(f"{leaf.dtype.name} {tuple(leaf.shape)}" for leaf in tf.nest.flatten(data) if hasattr(leaf, "shape"))


def _has_fixed_shapes(kind: Any) -> bool:
    """Whether each batch of this kind has the same shapes."""
    import tensorflow as tf

    leaves = tf.nest.flatten(kind)
    return all(isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined() for spec in leaves)


def _replay(batches: list[Any], iterator: Any) -> Any:
    """An iterator of these batches. One of the same kind as ``iterator`` reuses the traced function, so its random state
    continues; Keras takes batches from any other as well."""
    import tensorflow as tf

    kind = getattr(iterator, "element_spec", None)
    if kind is None or not all(isinstance(spec, tf.TensorSpec) for spec in tf.nest.flatten(kind)):
        return iter(batches)
    return iter(tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=kind))


def _without_empty_optionals(data: Any) -> Any:
    """The batch with None where TensorFlow's iterator has an empty Optional, as Keras passes it on."""
    import tensorflow as tf

    def present(value: Any) -> Any:
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return type(value)(map(present, value))
        if isinstance(value, dict):
            return {name: present(item) for name, item in value.items()}
        return None if isinstance(value, tf.experimental.Optional) else value

    return present(data)
