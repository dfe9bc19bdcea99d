"""Loads frozen TensorFlow graphs (``.pb``) as concrete functions with every shape known; ``Graph`` is for SavedModels, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ....adapters.shared.nested import Arguments
from ....adapters.tensorflow.graphs import graph as tf_graph
from ....adapters.tensorflow.graphs.frames import ROOT, Frames
from ....adapters.tensorflow.graphs.loops import Constants
from ....core.protocol import ModelFile
from ..model_file import (
    FileError,
    Wanted,
    match_inputs,
    member,
    show_name,
)


class Graph:
    """A concrete function in the role of a model; ``scopes`` as model.py records them."""

    def __init__(self, concrete: Any, scopes: dict[str, str], notes: tuple[str, ...] = ()) -> None:
        self.concrete = concrete
        self.scopes = scopes
        self.notes = notes
        self.built = True
        self.kept: Any = None  # a signature does not keep its variables alive
        self.in_file: Any = None  # (graph, inputs, outputs) of a frozen graph as it stands in the file

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        import tensorflow as tf

        inputs = list(tensors) + list(named.values())
        specs = self.concrete.inputs
        return self.concrete(*(tf.constant(x, spec.dtype) for x, spec in zip(inputs, specs)))  # noqa: B905


INLINED = re.compile(r"/[^/]+/(body|cond|then|else|branch_?\d*)/_\d+(/.*)?$")
"""The part of a node's name after the scope of a loop or branch, if the node is in its lowered body."""


def scopes_of(graph: Any) -> dict[str, str]:
    """Every name scope of a graph, and of the functions it calls, as a layer of its own: {scope: path}.

    The body of a loop belongs to the layer that contains the loop.
    """
    paths: dict[str, str] = {}
    pending = [(graph, "")]
    seen: set[tuple[str, str]] = set()
    while pending:
        inside, prefix = pending.pop()
        for operation in inside.get_operations():
            scope = operation.name.rpartition("/")[0]
            path = INLINED.sub("", scope).replace("/", ".")
            if scope:
                paths.setdefault(scope, path)
                paths.setdefault(prefix + scope, path)
            if operation.type.endswith("PartitionedCall"):
                name = operation.get_attr("f").name
                if (name, prefix) not in seen and len(seen) < 10_000:
                    seen.add((name, prefix))
                    try:
                        pending.append((tf_graph.function_graph(inside, name), prefix + operation.name + "/"))
                    except LookupError:  # the tracer reports this
                        continue
    return paths


def graph_def(file: ModelFile, given: Sequence[Any] | None) -> tuple[Graph, Arguments]:
    """A frozen graph, and the arguments to call it with: its placeholders are the inputs, and the outputs are those of
    ``chosen_outputs``. Raises FileError."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    where, v1 = member(file.path), tf.compat.v1
    definition = v1.GraphDef()
    try:
        with open(file.path, "rb") as data:
            definition.ParseFromString(data.read())
    except DecodeError as error:
        raise FileError(f"{where} is cut short or damaged: TensorFlow cannot parse it.") from error
    _check_known(where, definition)
    if any(node.op in ("VarHandleOp", "VariableV2", "Variable") for node in definition.node):
        raise FileError(
            f"{where} is not frozen: it holds variables without their values. Freeze it, or save a SavedModel."
        )
    holders = [node for node in definition.node if node.op == "Placeholder"]
    inputs = match_inputs(where, [_placeholder(where, node) for node in holders], given)
    model, left = import_graph(
        definition, [node.name for node in holders], inputs, lambda g: chosen_outputs(where, g, file.signature)
    )
    if left:
        model.notes += (
            f"no other node uses {list_names(left)}, so they count as dead (choose other outputs with --signature)",
        )
    return model, (tuple(inputs), {})


def import_graph(
    definition: Any, names: Sequence[str], inputs: Sequence[Any], choose: Callable[[Any], tuple[list[str], list[str]]]
) -> tuple[Graph, list[str]]:
    """A frozen graph with the shapes of ``inputs``, and the nodes that ``choose`` names besides the outputs."""
    import tensorflow as tf

    v1 = tf.compat.v1
    shapes = {name: tf.TensorShape(known.shape).as_proto() for name, known in zip(names, inputs)}  # noqa: B905
    for node in definition.node:
        node.attr.pop("_output_shapes", None)
        if node.name in shapes:
            node.attr["shape"].shape.CopyFrom(shapes[node.name])
    wrapped = v1.wrap_function(lambda: tf.import_graph_def(definition, name=""), [])
    graph = wrapped.graph
    outputs, left = choose(graph)
    tensors = [tensor for name in outputs for tensor in graph.get_operation_by_name(name).outputs]
    feeds = [graph.get_tensor_by_name(name + ":0") for name in names]
    concrete = wrapped.prune(feeds, tensors)
    model = Graph(concrete, scopes_of(graph), (f"from {list_names(names)} to {list_names(outputs)}",))
    model.in_file = (graph, feeds, tensors)
    return model, left


def list_names(names: Sequence[str]) -> str:
    """The first few of these names, and how many more there are, as a text."""
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"


def _placeholder(where: str, node: Any) -> Wanted:
    import tensorflow as tf

    try:
        shape = dims(tf.TensorShape(node.attr["shape"].shape if "shape" in node.attr else None))
        dtype = tf.as_dtype(node.attr["dtype"].type).name
    except (TypeError, ValueError) as error:
        raise FileError(
            f"{where} is damaged: its placeholder {show_name(node.name)} has no type or no shape."
        ) from error
    if any(size is not None and size < 0 for size in shape or ()):
        raise FileError(f"{where} is damaged: its placeholder {show_name(node.name)} has a size below 0.")
    return Wanted(node.name, shape, dtype)


def dims(shape: Any) -> tuple[int | None, ...] | None:
    """A TensorShape as plain sizes; None for an unknown rank."""
    return None if shape.rank is None else tuple(shape.as_list())


def chosen_outputs(where: str, graph: Any, asked: str) -> tuple[list[str], list[str]]:
    """Names of the outputs, and of other nodes that nothing consumes. Raises FileError.

    A function returns Identity nodes; beside those, freezing may leave other nodes that nothing consumes (the first step of
    a recurrent layer, run to learn its shapes). A graph without any Identity was cut down to its outputs.
    """
    if asked:
        names = [name.strip().split(":")[0] for name in asked.split(",")]
        known = {operation.name for operation in graph.get_operations()}
        if not set(names) <= known:
            raise FileError(f"{where} has no node {next(name for name in names if name not in known)}.")
        return names, []
    operations = graph.get_operations()
    used = {operation for each in operations for operation in each.control_inputs}
    used |= {tensor.op for each in operations for tensor in each.inputs}
    frames = Frames(graph, {each.name for each in operations}, Constants())
    ends = [each for each in operations if each not in used and each.outputs and frames.frame[each.name] == ROOT]
    ends = [each for each in ends if each.type not in ("Const", "Placeholder")]
    if not ends:
        raise FileError(f"{where} has no output: every node feeds another node.")
    returned = [each.name for each in ends if each.type == "Identity"]
    if not returned:
        return [each.name for each in ends], []
    return returned, [each.name for each in ends if each.type != "Identity"]


def _check_known(where: str, definition: Any) -> None:
    """Raise FileError if the GraphDef holds an op that is neither TensorFlow's nor one of its own functions."""
    from tensorflow.python.framework import op_def_registry

    functions = {function.signature.name for function in definition.library.function}
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    for op in dict.fromkeys(node.op for node in nodes):
        if op not in functions and op_def_registry.get(op) is None:
            raise FileError(
                f"{where} holds the op {show_name(op)}, which this TensorFlow does not have: it comes from a library that a "
                "factory can load first."
            )
