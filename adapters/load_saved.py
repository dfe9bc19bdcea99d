"""SavedModels out of folders: one signature, once it is clear that nothing in there runs what it must not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import tf_ops
from .load_graph import Graph, allow, dims, imported, listed, scopes_of
from .model_file import FileError, Wanted, matched, member, plain
from .nested import Arguments


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
    is_open = any(w.shape is None or None in w.shape for w in wanted)
    if is_open and any(operation.type in ("Variable", "VariableV2") for operation in concrete.graph.get_operations()):
        # TensorFlow 1's variables, which are values of a graph: frozen, and read back with the shapes that were given
        from tensorflow.python.framework import convert_to_constants as convert

        function, definition = convert.convert_variables_to_constants_v2_as_graph(concrete)
        names = {tensor.op.name: None for tensor in function.inputs}
        ends = list(dict.fromkeys(tensor.op.name for tensor in function.outputs))
        by_name = {plain(i.name): i for i in inputs}
        known = [by_name.get(plain(name), i) for name, i in zip(names, inputs)]  # noqa: B905
        model, _ = imported(definition, list(names), known, lambda _graph: (ends, []))
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
    """The signature asked for, else the one that is served by default, else the only one. Raises FileError."""
    if asked:
        if asked not in names:
            raise FileError(f"{where} has no signature {asked!r}; it has {listed(names)}.")
        return asked
    if "serving_default" in names:
        return "serving_default"
    if len(names) != 1:
        raise FileError(f"{where} has {listed(names)} for signatures: choose one with --signature.")
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
