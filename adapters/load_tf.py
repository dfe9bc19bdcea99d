"""TensorFlow models out of files: frozen graphs, SavedModels and Keras' own, as something a counter can be put to.

A Keras file gives the Keras model, as its factory would have.  A graph or a signature gives a concrete function with every
shape known: what was left open is what the user said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import load_keras, tf_graph, tf_ops
from .model_file import FileError, Wanted, matched, member
from .nested import Arguments
from .tf_frames import ROOT, Frames
from .tf_loops import Constants


def ready() -> None:
    """Start the framework, before the guards are up."""
    import tensorflow  # noqa: F401


def load(file: Mapping[str, Any], given: Sequence[Any] | None) -> tuple[Any, Arguments]:
    """The model in the file and the arguments to call it with. Raises FileError."""
    if file["kind"] == "graph_def":
        return graph_def(file, given)
    if file["kind"] == "saved_model":
        return saved_model(file, given)
    return load_keras.load(file, given)


class Graph:
    """A concrete function that stands where a model stands; ``scopes`` as tf_model.py records them."""

    def __init__(self, concrete: Any, scopes: dict[str, str], notes: tuple[str, ...] = ()) -> None:
        self.concrete = concrete
        self.scopes = scopes
        self.notes = notes
        self.built = True
        self.kept: Any = None  # a signature does not keep its variables alive
        self.whole: Any = None  # (graph, inputs, outputs) of a frozen graph as it stands in the file

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        import tensorflow as tf

        inputs = list(tensors) + list(named.values())
        specs = self.concrete.inputs
        return self.concrete(*(tf.constant(x, spec.dtype) for x, spec in zip(inputs, specs)))  # noqa: B905


INLINED = re.compile(r"/[^/]+/(body|cond|then|else|branch_?\d*)/_\d+(/.*)?$")
"""What stands behind the scope of a loop or branch, in the name of a node of its lowered body."""


def scopes_of(graph: Any) -> dict[str, str]:
    """Every name scope of a graph, and of the functions it calls, as a layer of its own: {scope: path}.

    A loop's body belongs to the layer that the loop stands in.
    """
    found: dict[str, str] = {}
    pending = [(graph, "")]
    seen: set[tuple[str, str]] = set()
    while pending:
        inside, prefix = pending.pop()
        for operation in inside.get_operations():
            scope = operation.name.rpartition("/")[0]
            path = INLINED.sub("", scope).replace("/", ".")
            if scope:
                found.setdefault(scope, path)
                found.setdefault(prefix + scope, path)
            if operation.type.endswith("PartitionedCall"):
                name = operation.get_attr("f").name
                if (name, prefix) not in seen and len(seen) < 10_000:
                    seen.add((name, prefix))
                    try:
                        pending.append((tf_graph.function_graph(inside, name), prefix + operation.name + "/"))
                    except LookupError:  # the tracer will say so
                        continue
    return found


def graph_def(file: Mapping[str, Any], given: Sequence[Any] | None) -> tuple[Graph, Arguments]:
    """A frozen graph: its placeholders are the inputs, what nothing consumes are the outputs."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    where, v1 = member(file["path"]), tf.compat.v1
    definition = v1.GraphDef()
    try:
        with open(file["path"], "rb") as data:
            definition.ParseFromString(data.read())
    except DecodeError as error:
        raise FileError(f"{where} is cut short or damaged: TensorFlow cannot parse it.") from error
    allow(where, definition, file["trusted"])
    if any(node.op in ("VarHandleOp", "VariableV2", "Variable") for node in definition.node):
        raise FileError(
            f"{where} is not frozen: it holds variables without their values. Freeze it, or save a SavedModel."
        )
    holders = [node for node in definition.node if node.op == "Placeholder"]
    inputs = matched(where, [_placeholder(node) for node in holders], given)
    for node, known in zip(holders, inputs):  # noqa: B905
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(known.shape).as_proto())
    for node in definition.node:
        node.attr.pop("_output_shapes", None)
    wrapped = v1.wrap_function(lambda: tf.import_graph_def(definition, name=""), [])
    graph = wrapped.graph
    names, left = chosen_outputs(where, graph, file["signature"])
    outputs = [tensor for name in names for tensor in graph.get_operation_by_name(name).outputs]
    feeds = [graph.get_tensor_by_name(node.name + ":0") for node in holders]
    concrete = wrapped.prune(feeds, outputs)
    said = f"from {_listed([n.name for n in holders])} to {_listed(names)}"
    if left:
        said += f"; {_listed(left)} go nowhere and are taken for dead (--signature names other outputs)"
    model = Graph(concrete, scopes_of(graph), (said,))
    model.whole = (graph, feeds, outputs)
    return model, (tuple(inputs), {})


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"


def _placeholder(node: Any) -> Wanted:
    import tensorflow as tf

    shape = tf.TensorShape(node.attr["shape"].shape) if "shape" in node.attr else tf.TensorShape(None)
    return Wanted(node.name, dims(shape), tf.as_dtype(node.attr["dtype"].type).name)


def dims(shape: Any) -> tuple[int | None, ...] | None:
    """A TensorShape as plain sizes; None for an unknown rank."""
    return None if shape.rank is None else tuple(shape.as_list())


def chosen_outputs(where: str, graph: Any, asked: str) -> tuple[list[str], list[str]]:
    """Names of the outputs, and of other nodes that nothing consumes. Raises FileError.

    What a function returns is an Identity; next to those, a node that goes nowhere is a rest that freezing left (a
    recurrent layer's first step, done to see its shapes). A graph without is one that was cut down to its outputs.
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
        raise FileError(f"{where} has no output: every node's result goes into another.")
    returned = [each.name for each in ends if each.type == "Identity"]
    if not returned:
        return [each.name for each in ends], []
    return returned, [each.name for each in ends if each.type != "Identity"]


def allow(where: str, definition: Any, trusted: bool) -> None:
    """Refuse a GraphDef that holds an op which must not run. Raises FileError."""
    if trusted:
        return
    functions = frozenset(f.signature.name for f in definition.library.function)
    nodes = [*definition.node, *(node for f in definition.library.function for node in f.node_def)]
    why = tf_ops.first_forbidden(nodes, functions)
    if why:
        raise FileError(f"{where} {why}.")


def saved_model(file: Mapping[str, Any], given: Sequence[Any] | None) -> tuple[Graph, Arguments]:
    """One signature of a SavedModel."""
    import tensorflow as tf

    where = member(file["path"])
    if not file["trusted"]:
        _allow_saved(where, file["path"])
    loaded = tf.saved_model.load(file["path"])
    name = choose_signature(where, list(loaded.signatures), file["signature"])
    concrete = loaded.signatures[name]
    specs = concrete.structured_input_signature[1]
    wanted = [Wanted(key, dims(spec.shape), spec.dtype.name) for key, spec in specs.items()]
    inputs = matched(where, wanted, given)
    if not file["trusted"]:
        allow(where, concrete.graph.as_graph_def(), False)
    if any(w.shape is None or None in w.shape for w in wanted):
        signature = concrete

        def infer(*tensors: Any) -> Any:
            return signature(**dict(zip(specs, tensors)))  # noqa: B905

        known = [tf.TensorSpec(i.shape, i.dtype, name=key) for i, key in zip(inputs, specs)]  # noqa: B905
        concrete = tf.function(infer).get_concrete_function(*known)
    graph = Graph(concrete, scopes_of(concrete.graph), (f"the signature {name}",))
    graph.kept = loaded
    return graph, (tuple(inputs), {})


def choose_signature(where: str, names: Sequence[str], asked: str) -> str:
    """The signature asked for, else the one that is served by default, else the only one. Raises FileError."""
    if asked:
        if asked not in names:
            raise FileError(f"{where} has no signature {asked!r}; it has {_listed(names)}.")
        return asked
    if "serving_default" in names:
        return "serving_default"
    if len(names) != 1:
        raise FileError(f"{where} has {_listed(names)} for signatures: choose one with --signature.")
    return names[0]


def _allow_saved(where: str, path: str) -> None:
    """Refuse a SavedModel that could run something forbidden, as it is loaded or later. Raises FileError.

    Its variables are saved and restored by nodes that ``saver_def`` names: these, and functions that they alone call, may.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.python.saved_model import loader_impl

    try:
        saved = loader_impl.parse_saved_model(path)
    except (DecodeError, OSError) as error:
        raise FileError(f"{where} is cut short or damaged: TensorFlow cannot parse it.") from error
    for meta in saved.meta_graphs:
        graph = meta.graph_def
        functions = {f.signature.name: f for f in graph.library.function}
        saving = _ancestors(graph, [meta.saver_def.save_tensor_name, meta.saver_def.restore_op_name])
        called = {name for node in graph.node if node.name in saving for name in _called(node)}
        elsewhere = [node for node in graph.node if node.name not in saving]
        elsewhere += [node for name, f in functions.items() if name not in called for node in f.node_def]
        inside = [node for node in graph.node if node.name in saving]
        inside += [node for name in called & set(functions) for node in functions[name].node_def]
        misused = called & (
            {n for node in elsewhere for n in _called(node)} | set(meta.object_graph_def.concrete_functions)
        )
        known = frozenset(functions)
        why = tf_ops.first_forbidden(elsewhere, known)
        why = why or tf_ops.first_forbidden(inside, known, tf_ops.SAVERS | {"ShardedFilename"})
        if why or misused:
            raise FileError("{} {}.".format(where, why or "calls what restores its variables; --trust-file lets it"))


def _ancestors(graph: Any, names: Sequence[str]) -> frozenset[str]:
    """Nodes that these, tensors or operations, depend on."""
    nodes = {node.name: node for node in graph.node}
    pending = [name.lstrip("^").split(":")[0] for name in names if name]
    found = set()
    while pending:
        name = pending.pop()
        if name in nodes and name not in found:
            found.add(name)
            pending += [n.lstrip("^").split(":")[0] for n in nodes[name].input]
    return frozenset(found)


def _called(node: Any) -> list[str]:
    """Names of functions in a node's attributes."""
    found = []
    for value in node.attr.values():
        found += [f.name for f in ([value.func] if value.HasField("func") else value.list.func)]
    return found
