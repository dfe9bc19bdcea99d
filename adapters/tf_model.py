"""One TensorFlow model under study: built once, its concrete function, name scopes, frozen graph and example input.

The static counters only read these graphs; the one that writes (run metadata fills in shapes) imports a graph of its
own.  Python 3.6, TensorFlow 2.x (the v1 session recipes have files of their own).
"""

from typing import Any, Dict, List, Tuple

from .trace_tf import Fetch


def quiet():
    # type: () -> None
    """Keep TensorFlow's start-up chatter out of the worker's log."""
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def versions():
    # type: () -> Dict[str, str]
    """Versions of TensorFlow and of the Keras that builds the models."""
    import tensorflow as tf

    found = {"tensorflow": tf.__version__}
    version = getattr(getattr(tf, "keras", None), "__version__", None)
    if version is None:  # a lazy tf.keras (2.13 to 2.15) has it only on the package behind it
        try:
            import keras
        except ImportError:
            return found
        version = keras.__version__
    found["keras"] = str(version)
    return found


def _children(layer):
    # type: (Any) -> List[Any]
    """Layers directly below one: Keras 2.4 and later list them, before that ``_layers`` did."""
    if hasattr(layer, "_flatten_layers"):
        found = list(layer._flatten_layers(recursive=False, include_self=False))
    else:
        found = getattr(layer, "_layers", [])
    return [sub for sub in found if hasattr(sub, "call") and hasattr(sub, "name")]


def layer_paths(model):
    # type: (Any) -> List[Tuple[Any, str]]
    """Every Keras layer below ``model`` with its path of names, dots between levels; a shared layer once."""
    found = []  # type: List[Tuple[Any, str]]
    seen = {id(model)}
    stack = [(sub, sub.name) for sub in reversed(_children(model))]
    while stack:
        layer, path = stack.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        found.append((layer, path))
        stack.extend((sub, path + "." + sub.name) for sub in reversed(_children(layer)))
    return found


def record_scopes(model, scopes):
    # type: (Any, Dict[str, str]) -> None
    """Make every layer of ``model`` note the name scope it is called in: {scope: layer path}."""
    for layer, path in layer_paths(model):
        _note_calls(layer, path, scopes)


def _note_calls(layer, path, scopes):
    # type: (Any, str, Dict[str, str]) -> None
    import functools

    import tensorflow as tf

    original = layer.call

    @functools.wraps(original)
    def call(*args, **kwargs):
        # type: (*Any, **Any) -> Any
        scopes.setdefault(str(tf.compat.v1.get_default_graph().get_name_scope()), path)
        return original(*args, **kwargs)

    object.__setattr__(layer, "call", call)


BATCH_OF_ONE = "keras_flops"
"""The recipe of keras-flops: get_flops takes a batch of 1 unless it is told otherwise (keras_flops/flops_calculation.py)."""


class TfModel(object):
    """A pair's TensorFlow side, built from a pair module and its parameters."""

    def __init__(self, pair, params, recipe=""):
        # type: (Any, Any, str) -> None
        self.notes = ()  # type: Tuple[str, ...]
        if recipe == BATCH_OF_ONE and getattr(params, "batch", 1) != 1:
            self.notes = ("keras-flops takes a batch of 1: this trace is of 1 as well, not of %s" % params.batch,)
            params = params.replaced(batch=1)
        self.pair = pair
        self.params = params
        self.scopes = {}  # type: Dict[str, str]
        self._model = None  # type: Any  # kept: a concrete function does not keep its variables alive
        self._concrete = None  # type: Any
        self._frozen = None  # type: Any
        self.input_specs = pair.inputs(params)

    @property
    def concrete(self):
        # type: () -> Any
        """The concrete function of one inference call on fully specified inputs."""
        if self._concrete is None:
            import tensorflow as tf

            model = self._model = self.pair.build_tf(self.params)
            record_scopes(model, self.scopes)
            specs = [tf.TensorSpec(i.shape, i.dtype, name=i.name) for i in self.input_specs]

            def infer(*inputs):
                # type: (*Any) -> Any
                arguments = inputs[0] if len(inputs) == 1 else list(inputs)
                if isinstance(model, tf.keras.Model):
                    return model(arguments, training=False)
                return model(*inputs)

            self._concrete = tf.function(infer).get_concrete_function(*specs)
        return self._concrete

    @property
    def frozen(self):
        # type: () -> Tuple[Any, Any]
        """Frozen concrete function (control flow lowered) and its GraphDef, by TensorFlow's own converter."""
        if self._frozen is None:
            from tensorflow.python.framework import convert_to_constants as convert

            self._frozen = convert.convert_variables_to_constants_v2_as_graph(self.concrete)
        return self._frozen

    def example(self):
        # type: () -> List[Any]
        """Example inputs: fixed pseudo-random numbers, integers as zeros and ones."""
        import numpy

        generator = numpy.random.RandomState(0)
        found = []
        for spec in self.input_specs:
            if spec.dtype.startswith(("float", "bfloat")):
                found.append(generator.standard_normal(spec.shape).astype(spec.dtype))
            else:
                found.append(generator.randint(0, 2, spec.shape).astype(spec.dtype))
        return found

    def fetch(self, wanted):
        # type: (List[Fetch]) -> Dict[Fetch, Any]
        """Values of tensors of the concrete function's graph, from one run of it with its weights as constants."""
        import tensorflow as tf
        from tensorflow.python.framework import convert_to_constants as convert

        function, graph_def = convert.convert_variables_to_constants_v2_as_graph(
            self.concrete, lower_control_flow=False
        )
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(graph_def, name="")
        feeds = {t.name: v for t, v in zip(function.inputs, self.example())}
        with tf.compat.v1.Session(graph=graph) as session:
            values = session.run(["%s:%d" % fetch for fetch in wanted], feeds)
        return dict(zip(wanted, values))
