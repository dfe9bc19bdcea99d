"""The graph and trace of one training step of a TensorFlow model: forward, loss, gradients, and the optimiser's step.

A compiled Keras model takes its own step (keras_train_step.py). Any other model takes the standard one: the loss is the mean of
squares of every floating output, summed over the outputs. Gradients come from a tape: only those of trained variables are
taken, none with respect to the model's input. The optimiser is the one of Keras with its default settings; its own variables
are made before the step.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.records import BACKWARD, FORWARD, LOSS, OPTIMIZER, Trace
from ..shared import nested
from ..shared.keras_model import STANDARD_STEP, is_compiled, keras_of, layer_paths
from ..shared.refusal import BeyondCounter, FactoryError
from .gradients import noted_gradients, parts, size
from .graphs import graph as tf_graph
from .graphs.layer_scopes import recorded_scopes
from .graphs.liveness import live_operations
from .keras_train_step import KerasTrainStep
from .model import TfModel, _dtype_name, is_leaf
from .phases import LayersAndPhases
from .step_graph import Step
from .targets import Batch
from .trace import Tracer, finish_trace

NOTHING_TO_TRAIN = (
    "nothing to train: no floating output depends on a variable that is trained; the step is the forward pass and the "
    "loss"
)


class TrainingModel(TfModel):
    """A pair's TensorFlow side in training: its concrete function is one step. ``training`` is the optimiser's name, and
    ``standard`` says whether a compiled model takes the step of that optimiser as well."""

    unfrozen_note = "the graph is not frozen, as a training step writes variables: control flow is not lowered in it"
    inlined = False  # its layers and phases are those of the step's own nodes

    def __init__(self, pair: Any, params: Any, training: str, standard: bool = False) -> None:
        super().__init__(pair, params)
        self.training = training
        self.standard = standard
        self.compiled_step: KerasTrainStep | None = None
        self.optimizer: Any = None
        self.trains = True  # known when the step has been built
        self._step: Step | None = None
        self._places: LayersAndPhases | None = None

    @property
    def concrete(self) -> Any:
        """The concrete function of one training step; of the forward pass and the loss if there is nothing to train."""
        if self._concrete is None:
            self._step = self._build()
        return self._concrete

    @property
    def step(self) -> Step:
        """The parts of the step's graph."""
        if self._step is None:
            self._step = self._build()
        return self._step

    def _ready(self) -> Any:
        """The model with its variables, which must exist before they are trained, and its own step if it has one."""
        model = self.build() if self._model is None else self._model
        fitted = isinstance(getattr(self.pair, "targets", None), Batch)
        built = getattr(model, "built", True)
        if not built and not fitted:
            self.invoke(self.example())
        if self.compiled_step is None and is_compiled(model) and not self.standard:
            self.compiled_step = KerasTrainStep(model, self.arguments, self.pair.targets)
            if not built and fitted:
                self.compiled_step.trace_unrecorded()  # such a model may have no call: its first step makes its variables
        return model

    def run_unrecorded(self) -> None:
        """The step without a counter: the function of the model's own, else a call of the model."""
        self._ready()
        if self.compiled_step is not None:
            self.compiled_step.trace_unrecorded()
        else:
            self.invoke(self.example())

    def describe_step_call(self) -> str:
        """The arguments of the model's call, and what its own step takes besides, in one line."""
        return self.called_with() + (
            f", in {self.compiled_step.describe_call()}" if self.compiled_step is not None else ""
        )

    def feeds(self) -> dict[str, Any]:
        """The example input and the targets by the names of the concrete function's inputs."""
        import numpy

        targets = map(numpy.asarray, self.compiled_step.targets) if self.compiled_step is not None else []
        return {t.name: v for t, v in zip(self.concrete.inputs, [*self.example(), *targets], strict=False)}

    def _build(self) -> Step:
        import tensorflow as tf

        model = self._ready()
        if self.compiled_step is not None:
            owners = owners_of(model)
            trained = list(model.trainable_variables)
            step = self.compiled_step.build(
                self.scopes, lambda v: owners.get(id(handle_of(v)), ""), lambda graph: handles_in(graph, trained)
            )
            self._concrete = self.compiled_step.concrete
            return step
        variables = self._trained_variables()
        # kept, because its variables live only as long as it does
        optimizer = self.optimizer = _optimizer(model, self.training, getattr(self.pair, "optimizer", None))
        optimizer.build(variables)
        tensors = nested.leaves(self.arguments, is_leaf)
        specs = [
            tf.TensorSpec(tuple(t.shape), _dtype_name(t), name=getattr(t, "name", None) or f"input{i}")
            for i, t in enumerate(tensors)
        ]
        built: dict[str, Any] = {}
        owners = owners_of(model)

        def standard(*inputs: Any) -> Any:
            graph = tf.compat.v1.get_default_graph()
            with tf.GradientTape() as tape:
                outputs = tf.nest.flatten(self.invoke(inputs, training=True))
                trained = handles_in(graph, variables)
                floating = [t for t in outputs if _is_float(t)]
                learned = [t for t in floating if _depends(t, trained)]
                built.update(inputs=inputs, trained=trained)
                forward = size(graph)
                self.trains = bool(learned)
                squared = learned or floating
                loss = tf.reduce_mean(tf.square(squared[0])) if squared else tf.constant(0.0)
                for other in squared[1:]:
                    loss = loss + tf.reduce_mean(tf.square(other))
            learning = size(graph)
            gradients = tape.gradient(loss, variables) if learned else [None] * len(variables)
            applying = size(graph)
            pairs = [(g, v) for g, v in zip(gradients, variables, strict=True) if parts(g)]
            with _noted_updates(optimizer, owners, graph) as updates:
                if pairs:
                    optimizer.apply_gradients(pairs)
            ends = [(forward, FORWARD), (learning, LOSS), (applying, BACKWARD), (size(graph), OPTIMIZER)]
            built.update(ends=ends, spans=((learning, applying),), updates=tuple(updates))
            model_outputs = [t for t in outputs if hasattr(t, "op")]  # also those that the loss does not need
            return loss, model_outputs

        with recorded_scopes(model, self.scopes), noted_gradients() as calls:
            self._concrete = tf.function(standard, autograph=False).get_concrete_function(*specs)
        built["parts"] = _part_of_each_op(built.pop("ends"), size(self._concrete.graph))
        return Step(graph=self._concrete.graph, calls=tuple(calls.calls), **built)

    def _trained_variables(self) -> list[Any]:
        """The trained variables: those that the model declares, else those that a tape sees the model read."""
        import tensorflow as tf

        told = getattr(self._model, "trainable_variables", None)
        if told is not None:
            return list(told)
        with tf.GradientTape() as tape:
            self.invoke(self.example())
        return list(tape.watched_variables())

    def places(self) -> Any:
        """Layer and phase of the ops of the step."""
        if self._places is None:
            self._places = LayersAndPhases(self.step, tf_graph.Scopes(self.scopes))
        return self._places

    def layers(self) -> Any:
        """Layer of a node by its name."""
        return _Layers(self.places())

    @property
    def frozen(self) -> Any:
        """Raises BeyondCounter: freezing would turn variables into constants."""
        raise BeyondCounter("a training step writes variables, and a graph that does cannot be frozen")


def _part_of_each_op(ends: list[tuple[int, str]], count: int) -> tuple[str, ...]:
    """The part of each op: a part goes up to its end, and the last one to the end of the graph."""
    parts: list[str] = []
    for end, part in ends:
        parts += [part] * (end - len(parts))
    return (*parts, *[parts[-1]] * (count - len(parts)))


def _is_float(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "op") and bool(value.dtype.is_floating)


def _optimizer(model: Any, name: str, given: Any = None) -> Any:
    """The optimiser of this name, from the Keras that made the model, with its default settings; or a copy of the given one.

    Raises FactoryError for a name that this Keras does not have.
    """
    import tensorflow as tf

    if given is not None:
        if not hasattr(given, "apply_gradients"):
            raise FactoryError(f"optimizer= is {type(given).__name__}; give an optimizer of Keras, or its name.")
        return type(given).from_config(given.get_config())

    package = keras_of(model)
    keras = tf.keras if package in ("", "tensorflow") else importlib.import_module(package)
    base = keras.optimizers.Optimizer
    known = {
        each.lower(): kind
        for each, kind in vars(keras.optimizers).items()
        if isinstance(kind, type) and issubclass(kind, base)
    }
    if name not in known:
        raise FactoryError(f"keras.optimizers has no {name} here: it has {', '.join(sorted(known))}.")
    return known[name]()


def _depends(tensor: Any, trained: tuple[Any, ...]) -> bool:
    live = live_operations([tensor])
    return any(t.op.name in live for t in trained)


@contextmanager
def _noted_updates(optimizer: Any, owners: dict[int, str], graph: Any) -> Iterator[list[tuple[int, int, str]]]:
    """Within this block the ops of each variable's update are noted with the variable's layer."""
    updates: list[tuple[int, int, str]] = []
    update = optimizer.update_step

    def update_noted(gradient: Any, variable: Any, *rest: Any, **named: Any) -> Any:
        start = size(graph)
        done = update(gradient, variable, *rest, **named)
        updates.append((start, size(graph), owners.get(id(handle_of(variable)), "")))
        return done

    optimizer.update_step = update_noted
    try:
        yield updates
    finally:
        optimizer.update_step = update


class _Layers:
    """Like tf_graph.Scopes: the layer of a node by its name."""

    def __init__(self, places: LayersAndPhases) -> None:
        self._places = places

    def layer(self, name: str) -> str:
        return (self._places.step_places.get(name) or ("", ""))[0] or ""


class TrainingTracer(Tracer):
    """Walks a training step's graph; phases and layers are those of its places."""

    def __init__(self, model: TrainingModel) -> None:
        super().__init__(model.layers(), model.count_runs, model.observed_shapes)
        self.places = model.places()
        self._phases: dict[str, str] = {}

    def layer_and_phase(self, graph: Any, name: str, id: str, layer: str, within: tuple[str, ...]) -> tuple[str, str]:
        """Layer and phase of an op."""
        if within:
            own_layer, phase = self.places.place_in_body(graph, name, self._phases[within[-1]])
        else:
            own_layer, phase = self.places.step_places[name]
        self._phases[id] = phase
        return own_layer or layer, phase


def trace(model: TrainingModel) -> Trace:
    """Trace of one training step."""
    concrete = model.concrete
    tracer = TrainingTracer(model)
    tracer.trace(concrete.graph, tf_graph.graph_outputs(concrete.graph))
    return finish_trace(tracer, model.versions(), _notes(model))


def _notes(model: TrainingModel) -> tuple[str, ...]:
    asked = (STANDARD_STEP,) if model.standard and is_compiled(model.called_model) else ()
    return (step_description(model), *asked, *(() if model.trains else (NOTHING_TO_TRAIN,)), *model.notes)


def step_description(model: TrainingModel) -> str:
    """The description of the step, for the report."""
    if model.compiled_step is not None:
        return model.compiled_step.note()
    return (
        "one training step: forward in train mode; loss: the mean of squares of every floating output, summed; gradients "
        "with respect to the trained variables (none with respect to the model's input); one step of "
        f"{type(model.optimizer).__module__.partition('.')[0]}.optimizers.{type(model.optimizer).__name__}"
    )


def handle_of(variable: Any) -> Any:
    """The handle of a variable of Keras or TensorFlow, by which a graph captures it."""
    value = getattr(variable, "value", variable)
    return getattr(variable, "handle", None) if callable(value) else value.handle


def handles_in(graph: Any, variables: list[Any]) -> tuple[Any, ...]:
    """The handles of the variables that a graph uses."""
    wanted = {id(handle_of(variable)) for variable in variables}
    return tuple(inside for outside, inside in graph.captures if id(outside) in wanted)


def owners_of(model: Any) -> dict[int, str]:
    """Layer of each trained variable, by its handle's identity: the innermost layer that has it."""
    owners: dict[int, str] = {}
    for layer, path in layer_paths(model):
        for variable in getattr(layer, "trainable_variables", ()):
            if path.count(".") >= owners.get(id(handle_of(variable)), "").count("."):
                owners[id(handle_of(variable))] = path
    return owners
