"""Loads TensorFlow model files (frozen graphs, SavedModels, Keras files) in a form that counters can count.

A Keras file gives the Keras model, as a factory would.  A graph or a signature gives a concrete function with every shape
known: the user gives the sizes that the file leaves open. The ops that restore a SavedModel and fill its tables run, confined
(confine.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....core.protocol import ModelFile
from ..model_file import FileError, Wanted, match_inputs, member, plain
from . import load_keras
from .load_graph import Graph, dims, graph_def, import_graph, list_names, scopes_of


def ready() -> None:
    """Start the framework, before the memory is limited."""
    import tensorflow  # noqa: F401


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The model in the file and the arguments to call it with. Raises FileError."""
    loaders = {"graph_def": graph_def, "saved_model": saved_model}
    return loaders.get(file.kind, load_keras.load)(file, given)


def saved_model(file: ModelFile, given: Sequence[Any] | None) -> tuple[Graph, Arguments]:
    """One signature of a SavedModel as a graph, and the arguments to call it with. Raises FileError."""
    import tensorflow as tf

    where = member(file.path)
    loaded = tf.saved_model.load(file.path)
    name = choose_signature(where, list(loaded.signatures), file.signature)
    concrete = loaded.signatures[name]
    specs = concrete.structured_input_signature[1]
    wanted = [Wanted(key, dims(spec.shape), spec.dtype.name) for key, spec in specs.items()]
    inputs = match_inputs(where, wanted, given)
    is_open = any(w.shape is None or None in w.shape for w in wanted)
    if is_open and any(operation.type in ("Variable", "VariableV2") for operation in concrete.graph.get_operations()):
        # variables of TensorFlow 1 are values of a graph: freeze them and read the graph back with the given shapes
        from tensorflow.python.framework import convert_to_constants as convert

        function, definition = convert.convert_variables_to_constants_v2_as_graph(concrete)
        names = {tensor.op.name: None for tensor in function.inputs}
        ends = list(dict.fromkeys(tensor.op.name for tensor in function.outputs))
        by_name = {plain(i.name): i for i in inputs}
        known = [by_name.get(plain(name), i) for name, i in zip(names, inputs)]  # noqa: B905
        model, _ = import_graph(definition, list(names), known, lambda _graph: (ends, []))
        return model, (tuple(known), {})
    if is_open:
        signature = concrete

        def infer(*tensors: Any) -> Any:
            return signature(**dict(zip(specs, tensors)))  # noqa: B905

        known = [tf.TensorSpec(i.shape, i.dtype, name=key) for i, key in zip(inputs, specs)]  # noqa: B905
        concrete = tf.function(infer).get_concrete_function(*known)
    graph = Graph(concrete, scopes_of(concrete.graph), (f"the signature {name}",))
    graph.kept = loaded
    return graph, (tuple(inputs), {})


def choose_signature(where: str, names: Sequence[str], asked: str) -> str:
    """The requested signature, else the default one for serving, else the only one. Raises FileError."""
    if asked:
        if asked not in names:
            raise FileError(f"{where} has no signature {asked!r}; it has {list_names(names)}.")
        return asked
    if "serving_default" in names:
        return "serving_default"
    if len(names) != 1:
        raise FileError(f"{where} has the signatures {list_names(names)}: choose one with --signature.")
    return names[0]
