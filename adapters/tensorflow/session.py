"""A model in a TensorFlow 1 session graph, initialisers included, as recipes for TensorFlow 1's profiler build it.

The pair builds into a v1 graph.  ``build_tf_session(p)``, if the pair has it, follows a published recipe and returns
(inputs, outputs); otherwise ``build_tf`` is called, and a model that is a callable gets placeholders.
Python 3.6, TensorFlow 1.12 and later.
"""

import re
from typing import Any, Dict, FrozenSet, List, NamedTuple, Tuple

from ...core.records import DUPLICATE, Trace
from ..shared.keras_model import keras_of, layer_paths
from ..shared.refusal import CannotCount
from .graphs import graph as tf_graph
from .graphs import liveness
from .graphs.run_counts import Body, count_bodies, run_counted
from .model import versions
from .trace import Tracer, finish_trace


class Built(NamedTuple):
    """The graph of a recipe: the tensors of its last model, gradients included, and the names of the ops before that model."""

    graph: Any
    inputs: List[Any]
    outputs: List[Any]
    gradients: List[Any]
    first: FrozenSet[str]


def _scope(layer: Any, path: str) -> Tuple[str, str]:
    """Name scope of a layer and its path. A second layer of one name has a scope with a number: ``conv_1/BiasAdd``."""
    try:
        parts = layer.output.op.name.split("/")
    except (AttributeError, RuntimeError, ValueError):  # never called, or more than once; several outputs
        return layer.name, path
    for end, part in enumerate(parts, 1):
        if re.match(re.escape(layer.name) + r"(_\d+)?$", part):
            return "/".join(parts[:end]), path
    return layer.name, path


def _in_graph(model: Any) -> Tuple[List[Any], List[Any]]:
    """Inputs and outputs of a Keras model as tensors of the graph in which it was made. Raises CannotCount for Keras 3."""
    inputs, outputs = list(model.inputs), list(model.outputs)
    if not all(hasattr(tensor, "op") for tensor in inputs + outputs):
        raise CannotCount(
            "the recipe profiles the graph that a Keras model of TensorFlow 1 or 2 makes, and Keras 3 makes none: run it in an "
            "environment with TensorFlow 2.15 or older"
        )
    return inputs, outputs


class TfSession:
    """A pair's TensorFlow side in a v1 graph: what was ``built``, and name scopes.

    ``recipe`` is how people built it: ``session`` (as the pair says), ``batch_none`` (Keras' default: the batch left
    open, so that no shape behind the input is known), ``built_twice`` (that, then the model again in the same graph with
    the gradients of its output, to get "backward" by subtraction), ``frozen_pb`` (as the pair says, then frozen).
    """

    def __init__(self, pair: Any, params: Any, recipe: str = "session") -> None:
        self.v1 = tf_graph.v1()
        if hasattr(self.v1, "disable_eager_execution"):
            self.v1.disable_eager_execution()
        self.pair = pair
        self.params = params
        self.recipe = recipe
        self.scopes: Dict[str, str] = {}
        self.open_batch = recipe in ("batch_none", "built_twice")
        self.built = self._follow_recipe(params.replaced(batch=None) if self.open_batch else params)

    def _follow_recipe(self, params: Any) -> Built:
        """Follow the recipe with these parameters, in a new graph."""
        graph = self.v1.Graph()
        first: FrozenSet[str] = frozenset()
        gradients: List[Any] = []
        with graph.as_default():
            inputs, outputs = self._build(params)
            if self.recipe == "built_twice":
                first = frozenset(op.name for op in graph.get_operations())
                inputs, outputs = self._build(params)
                all_gradients = self.v1.gradients(outputs, self.v1.trainable_variables())
                gradients = [g for g in all_gradients if g is not None]  # variables of the first model have none
        return Built(graph, inputs, outputs, gradients, first)

    def _build(self, params: Any) -> Tuple[List[Any], List[Any]]:
        build = self.pair.build_tf if self.open_batch else self.pair.build_tf_session
        model = build(params)
        if keras_of(model):
            inputs, outputs = _in_graph(model)
            self.scopes.update(_scope(layer, path) for layer, path in layer_paths(model))
            return inputs, outputs
        inputs = [self.v1.placeholder(i.dtype, i.shape, name=i.name) for i in self.pair.inputs(params)]
        outputs = model(*inputs)
        return inputs, list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]

    def versions(self) -> Dict[str, str]:
        """Versions of TensorFlow and Keras."""
        return versions()

    def roles(self) -> Dict[str, str]:
        """Role of every operation; all ops of the first of two builds are duplicates."""
        built = self.built
        roles = liveness.roles(built.graph, built.outputs + built.gradients, built.inputs)
        roles.update(dict.fromkeys(built.first, DUPLICATE))
        return roles

    def frozen(self) -> Any:
        """A graph of its own with the outputs' frozen GraphDef, written to a .pb file and read back."""
        import os
        import tempfile

        built, v1 = self.built, self.v1
        with built.graph.as_default(), v1.Session(graph=built.graph) as session:
            session.run(v1.global_variables_initializer())
            names = [tensor.op.name for tensor in built.outputs]
            frozen = v1.graph_util.convert_variables_to_constants(session, built.graph.as_graph_def(), names)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "frozen.pb")
            with open(path, "wb") as file:
                file.write(frozen.SerializeToString())
            read = v1.GraphDef()
            with open(path, "rb") as file:
                read.ParseFromString(file.read())
        graph = v1.Graph()
        with graph.as_default():
            v1.import_graph_def(read, name="")
        return graph

    def trace(self) -> Trace:
        """Trace of one evaluation of the outputs (and gradients) from the inputs; making the inputs is not the model's work."""
        if not self.open_batch:
            return self._trace(self.built)
        # Shapes are not known in the graph that was profiled: the same model with its batch given has the same names.
        note = f"the batch that was left open is taken as {self.params.batch}"
        return self._trace(self._follow_recipe(self.params), (note,))

    def _trace(self, built: Built, notes: Tuple[str, ...] = ()) -> Trace:
        tracer = Tracer(tf_graph.Scopes(self.scopes), lambda wanted: self._count_runs(built, wanted))
        tracer.trace(built.graph, built.outputs, built.inputs, built.gradients)
        return finish_trace(tracer, self.versions(), notes)

    def _count_runs(self, built: Built, wanted: List[Body]) -> Dict[Body, int]:
        """How often these bodies run with freshly initialised weights; placeholders get ones."""
        import numpy

        counted = count_bodies(built.graph.as_graph_def(), wanted)
        graph = self.v1.Graph()
        with built.graph.as_default():
            start = [variable.initializer.name for variable in self.v1.global_variables()]
        with graph.as_default():
            self.v1.import_graph_def(counted.definition, name="")
        feeds = {
            t.name: numpy.ones([int(d) for d in t.shape], t.dtype.as_numpy_dtype)
            for t in built.inputs
            if t.op.type == "Placeholder"
        }
        results = [
            graph.get_operation_by_name(getattr(item, "op", item).name) for item in built.outputs + built.gradients
        ]
        return run_counted(graph, counted.counters, (start, {}), results, feeds)
