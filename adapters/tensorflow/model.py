"""TfModel, the TensorFlow model that is counted: concrete function, name scopes, frozen graph and example input, built once.

It also runs copies of the graph, for metadata, shapes, and how often bodies run. The static counters only read the graphs; the
one that writes (run metadata fills in shapes) imports its own. Python 3.6, TensorFlow 2.x (session.py is for TensorFlow 1).
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ...core.framework import pause_garbage_collection
from ..shared import nested
from ..shared.keras_model import as_taken, keras_of
from ..shared.refusal import BeyondCounter
from . import freezing
from .graphs import own_graph
from .graphs.graph import Scopes, canonical, session_of
from .graphs.layer_scopes import recorded_scopes
from .graphs.run_counts import Body, count_bodies, run_counted


def quiet() -> None:
    """Keep TensorFlow's start-up chatter out of the worker's log, and let it run the same kernels on every CPU.

    TensorFlow has oneDNN on where the CPU has AVX512-VNNI and off elsewhere; without it, no convolution of NCHW runs on a CPU.
    """
    import os

    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def versions(model: Any = None) -> Dict[str, str]:
    """Versions of TensorFlow and of the Keras that made the model, or of the one that TensorFlow uses."""
    import importlib

    import tensorflow as tf

    package_versions = {"tensorflow": tf.__version__}
    package = keras_of(model)
    if package in ("", "tensorflow"):
        package = ""
        version = getattr(getattr(tf, "keras", None), "__version__", None)
        if version is None and hasattr(tf, "keras"):  # a lazy tf.keras has it only on the package behind it
            package = tf.keras.Model.__module__.split(".")[0]
    if package:
        version = getattr(importlib.import_module(package), "__version__", None)
    if version is not None:
        package_versions["keras"] = str(version)
    return package_versions


BATCH_OF_ONE = "keras_flops"
"""The recipe of keras-flops: get_flops uses a batch of 1 by default (keras_flops/flops_calculation.py)."""


def is_leaf(value: Any) -> bool:
    """Whether an argument is a tensor (of TensorFlow or numpy), or the shape and dtype of a tensor to make."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _dtype_name(leaf: Any) -> str:
    return str(getattr(leaf.dtype, "name", leaf.dtype))


def _tell(leaf: Any) -> str:
    return f"{_dtype_name(leaf)} {tuple(int(size) for size in leaf.shape)}"


class TfModel:
    """A pair's TensorFlow side, built from a pair module and its parameters."""

    inlined = True
    """Whether calls are inlined in the graph that a counter runs if the function cannot be frozen."""
    unfrozen_note = "the graph is not frozen, as it writes variables"

    def __init__(self, pair: Any, params: Any, recipe: str = "") -> None:
        self.notes: Tuple[str, ...] = ()
        if recipe == BATCH_OF_ONE and getattr(params, "batch", 1) != 1:
            self.notes = (
                f"keras-flops uses a batch of 1, so this trace has a batch of 1 as well, not of {params.batch}",
            )
            params = params.replaced(batch=1)
        self.pair = pair
        self.params = params
        self.scopes: Dict[str, str] = {}
        self._model: Any = None  # kept: a concrete function does not keep its variables alive
        self._concrete: Any = None
        self._frozen: Any = None
        self._unfrozen: Optional[BeyondCounter] = None
        self.arguments: nested.Arguments = ((), {})  # known when the model has been built

    @property
    def concrete(self) -> Any:
        """The concrete function of one inference call on fully specified inputs."""
        if self._concrete is None:
            import tensorflow as tf

            model = self.build() if self._model is None else self._model
            if hasattr(model, "concrete"):  # a graph from a file: already traced
                self.scopes.update(model.scopes)
                self.notes += model.notes
                self._concrete = model.concrete
                return self._concrete
            tensors = nested.leaves(self.arguments, is_leaf)
            if self.pair.user_model and not getattr(model, "built", True):
                self.invoke(self.example())  # the first call makes the layers, which must exist before they are listed
            specs = [
                tf.TensorSpec(tuple(t.shape), _dtype_name(t), name=getattr(t, "name", None) or f"input{i}")
                for i, t in enumerate(tensors)
            ]

            def infer(*inputs: Any) -> Any:
                return self.invoke(inputs)

            with recorded_scopes(model, self.scopes), pause_garbage_collection():
                self._concrete = tf.function(infer).get_concrete_function(*specs)
        return self._concrete

    def build(self) -> Any:
        """Make the model and the arguments of its call."""
        self._model = self.pair.build_tf(self.params)
        self.arguments = self.pair.arguments(self.params)
        return self._model

    @property
    def called_model(self) -> Any:
        """The model that ``concrete`` calls."""
        assert self.concrete is not None
        return self._model

    def in_file(self) -> Tuple[Any, List[Any], List[Any]]:
        """Graph, inputs and outputs of the model as a frozen graph in a file is read back, including dead nodes.

        A model that is such a file is its own; of any other, it is the function that ``frozen`` has.
        """
        assert self.concrete is not None
        kept = getattr(self._model, "in_file", None)
        if kept is None:
            import tensorflow as tf

            function, graph = self.frozen.function, tf.Graph()
            with graph.as_default(), pause_garbage_collection():
                tf.import_graph_def(self.frozen.graph_def_without_weights, name="")
            kept = tuple([graph.get_tensor_by_name(t.name) for t in ts] for ts in (function.inputs, function.outputs))
            kept = (graph, *kept)
        return kept

    def layers(self) -> Any:
        """Layer of a node by its name: an object with ``layer(name)``."""
        return Scopes(self.scopes)

    def invoke(self, tensors: Sequence[Any], training: bool = False) -> Any:
        """One call of the model with these tensors; inference by default."""
        positional, named = nested.fill_leaves(self.arguments, is_leaf, tensors)
        if keras_of(self._model):
            positional, named = as_taken(self._model, positional, named)
            return self._model(*positional, training=training, **named)
        return self._model(*positional, **named)

    @property
    def frozen(self) -> freezing.Frozen:
        """The frozen concrete function (control flow lowered), by TensorFlow's own converter. Raises BeyondCounter."""
        if self._unfrozen is not None:
            raise self._unfrozen
        if self._frozen is None:
            try:
                self._frozen = freezing.freeze(self.concrete)
            except BeyondCounter as error:
                self._unfrozen = error
                raise
        return self._frozen

    @property
    def freezes(self) -> bool:
        """Whether the concrete function can be frozen: it cannot if it writes a variable."""
        try:
            return self.frozen is not None
        except BeyondCounter:
            return False

    @property
    def run_notes(self) -> Tuple[str, ...]:
        """Notes on ``traced_run``."""
        return () if self.freezes else (self.unfrozen_note,)

    def versions(self) -> Dict[str, str]:
        """Versions of TensorFlow and Keras."""
        return versions(self._model)

    def example(self) -> List[Any]:
        """Numpy arrays for one call: the given tensors, else fixed pseudo-random numbers, and zeros and ones for integers."""
        import numpy

        generator = numpy.random.RandomState(0)
        arrays = []
        for leaf in nested.leaves(self.arguments, is_leaf):
            if hasattr(leaf, "__array__"):
                arrays.append(numpy.asarray(leaf))
            elif leaf.dtype == "string":
                arrays.append(numpy.full(leaf.shape, b"", object))
            elif leaf.dtype.startswith(("float", "bfloat")):
                arrays.append(generator.standard_normal(leaf.shape).astype(leaf.dtype))
            else:
                arrays.append(generator.randint(0, 2, leaf.shape).astype(leaf.dtype))
        return arrays

    def called_with(self) -> str:
        """The arguments of the model's call, in one line."""
        return nested.describe_arguments(self.arguments, is_leaf, _tell)

    def traced_run(self, weights: bool = False, every_node: bool = False) -> Tuple[Any, List[Any], Any]:
        """The frozen GraphDef in a graph of its own, its outputs there, and the metadata of one traced run on the CPU.

        If the weights could determine which nodes run, or if ``weights`` is set, the run uses the graph with its weights; the
        returned graph never contains them. ``every_node`` is that of ``session_of``.
        """
        import tensorflow as tf

        v1 = tf.compat.v1
        run_meta = v1.RunMetadata()
        if not self.freezes:
            definition = freezing.inline_calls(self.concrete) if self.inlined else None
            own = own_graph.own_graph(self.concrete, definition)
            results = own_graph.results_of(own, self.concrete)
            own_graph.run_graph(own, results, self.feeds(), run_meta, every_node)
            return own.graph, results, run_meta
        function = self.frozen.function
        graph = running = tf.Graph()
        targets = [(graph, self.frozen.graph_def_without_weights)]
        if weights or self.frozen.weights_may_steer_control_flow:
            running = tf.Graph()
            targets.append((running, self.frozen.with_weights()))
        for target, graph_def in targets:
            with target.as_default(), pause_garbage_collection():
                tf.import_graph_def(graph_def, name="")
        feeds = {t.name: v for t, v in zip(function.inputs, self.example())}
        names = [t.name for t in function.outputs]
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        with own_graph.refuse_failed_run(), session_of(running, every_node) as session:
            session.run(names, feeds, options=options, run_metadata=run_meta)
        return graph, [graph.get_tensor_by_name(name) for name in names], run_meta

    def observed_shapes(self) -> Dict[Tuple[str, int], Tuple[int, ...]]:
        """Shapes of one run by the node's id in the trace and output; left out if two executions of a node differ.

        Every node runs: two layers that reshape one tensor alike are one node otherwise, and the second has no shape.
        """
        shapes: Dict[Tuple[str, int], Any] = {}
        for device in self.traced_run(weights=True, every_node=True)[2].step_stats.dev_stats:
            for node in device.node_stats:
                for output in node.output:
                    key = (canonical(node.node_name), output.slot)
                    shape = tuple(int(dim.size) for dim in output.tensor_description.shape.dim)
                    shapes[key] = shape if shapes.get(key, shape) == shape else None
        return {key: shape for key, shape in shapes.items() if shape is not None}

    def count_runs(self, wanted: List[Body]) -> Dict[Body, int]:
        """How often each of these bodies runs in one run of the concrete function; without those that it does not have."""
        counted = count_bodies(self.concrete.graph.as_graph_def(), wanted)
        own = own_graph.own_graph(self.concrete, counted.definition)
        results = own_graph.results_of(own, self.concrete)
        with own_graph.refuse_failed_run():
            return run_counted(own.graph, counted.counters, (own.start, own.values), results, self.feeds())

    def feeds(self) -> Dict[str, Any]:
        """The example input by the names of the concrete function's inputs; the rest of those are captured."""
        return {t.name: v for t, v in zip(self.concrete.inputs, self.example())}
