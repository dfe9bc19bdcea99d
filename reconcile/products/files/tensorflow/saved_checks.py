"""A copy of a SavedModel that is safe for TensorFlow to load: its graphs and functions without ops that must not run.

TensorFlow runs much of a SavedModel while it loads it: ops that restore variables, that initialize tables and other objects,
and those that the collections of a graph call initializers.  So the copy does not contain any op that must not run.  The
ops that save the model are removed; if anything else needs a forbidden op, the file is refused.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..model_file import FileError, show_name
from . import ops as tf_ops

SAVING = frozenset(["Save", "SaveSlices", "SaveV2", "ShardedFilename", "ShardedFilespec", "MergeV2Checkpoints"])
RESTORING = frozenset(["Restore", "RestoreSlice", "RestoreV2"])
FILE_NAMES = frozenset(["Const", "Placeholder", "PlaceholderWithDefault"])
"""The op of a saver's file name in graphs that TensorFlow made."""


@contextlib.contextmanager
def check_saved_model(where: str, path: str) -> Iterator[str]:
    """A temporary folder with the part of a SavedModel that may be loaded. Raises FileError."""
    saved = _parse_model(where, path)
    for meta in saved.meta_graphs:
        if len(saved.meta_graphs) == 1 and meta.HasField("object_graph_def"):  # TensorFlow reads this
            _check_objects(where, meta)
        else:
            _check_graph(where, meta)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, where)
        folder.mkdir()
        (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
        _copy(Path(path, "variables"), folder / "variables")
        yield str(folder)


def _copy(variables: Path, to: Path) -> None:
    """Copy the bytes of the files in the folder, if it exists.

    A confined worker (confine.py) may not make links or set permissions and times, and no other process can
    change a copy meanwhile."""
    if variables.is_dir():
        to.mkdir()
        for file in variables.iterdir():
            if file.is_file():
                shutil.copyfile(file, to / file.name)


def _parse_model(where: str, path: str) -> Any:
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    try:
        return saved_model_pb2.SavedModel.FromString(Path(path, "saved_model.pb").read_bytes())
    except DecodeError as error:
        raise FileError(f"{where} is cut short or damaged: TensorFlow cannot parse it.") from error


def _check_objects(where: str, meta: Any) -> None:
    """Remove functions that must not run, in place; the graph does not run, and TensorFlow reads only its constants."""
    graph = meta.graph_def
    constants = [node for node in graph.node if node.op == "Const"]
    del graph.node[:]
    graph.node.extend(constants)
    known = _names(where, [f.signature.name for f in graph.library.function])
    why = {f.signature.name: tf_ops.first_forbidden(f.node_def, known) for f in graph.library.function}
    calls = {
        f.signature.name: {c for n in f.node_def for c in _called_functions(n)} & known for f in graph.library.function
    }
    _spread_reasons(why, calls)
    objects = meta.object_graph_def
    named = set(objects.concrete_functions)
    for each in objects.nodes:
        named |= {*each.function.concrete_functions, each.bare_concrete_function.concrete_function_name}
    _refuse(where, why, sorted(named))
    kept = [f for f in graph.library.function if not why[f.signature.name]]
    del graph.library.function[:]
    graph.library.function.extend(kept)


def _check_graph(where: str, meta: Any) -> None:
    """Remove the ops that save, in place; the ops that restore read only the model's own variables."""
    graph, saver = meta.graph_def, meta.saver_def
    known = _names(where, [f.signature.name for f in graph.library.function])
    _names(where, [n.name for n in graph.node])
    nodes = [n for n in graph.node if n.op not in SAVING]
    forbidden = tf_ops.first_forbidden(nodes, known, RESTORING)
    for function in graph.library.function:
        forbidden = forbidden or tf_ops.first_forbidden(function.node_def, known)
    if forbidden:
        raise FileError(f"{where} {forbidden}.")
    why = {n.name: tf_ops.forbidden(n) if n.op in SAVING else None for n in graph.node}
    _spread_reasons(why, {n.name: [_node(name) for name in n.input] for n in graph.node})
    ends = [tensor.name for signature in meta.signature_def.values() for tensor in signature.outputs.values()]
    ends += [name for collection in meta.collection_def.values() for name in collection.node_list.value]
    _refuse(where, why, [_node(name) for name in (saver.restore_op_name, *ends)])
    _fix_file_name(where, {n.name: n for n in graph.node}, _node(saver.filename_tensor_name))
    kept = [n for n in graph.node if not why[n.name]]
    del graph.node[:]
    graph.node.extend(kept)


def _names(where: str, names: list[str]) -> frozenset[str]:
    """The set of these names. Raises FileError if one occurs twice."""
    unique = frozenset(names)
    if len(unique) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileError(f"{where} is damaged: the name {show_name(twice)} occurs in it twice.")
    return unique


def _fix_file_name(where: str, nodes: Mapping[str, Any], name: str) -> None:
    """Turn the name of the restored file into a placeholder, in place: TensorFlow then feeds only the file of the variables."""
    restoring = [node for node in nodes.values() if node.op in RESTORING]
    for node in restoring:
        source = nodes.get(_node(node.input[0])) if node.input else None
        if source is None or source.name != name or source.op not in FILE_NAMES:
            raise FileError(
                f"{where} restores {show_name(node.name)} from a file that the model chooses; "
                "pass --trust-file to allow it."
            )
    if restoring:
        from tensorflow.core.framework import types_pb2

        made = nodes[name]
        made.op = "Placeholder"
        del made.input[:]
        made.attr.clear()
        made.attr["dtype"].type = types_pb2.DT_STRING


def _spread_reasons(why: dict[str, str | None], needs: Mapping[str, Any]) -> None:
    """Copy the reason to every name that needs one that must not run, in place."""
    users: dict[str, list[str]] = {}
    for name, needed in needs.items():
        for each in needed:
            users.setdefault(each, []).append(name)
    pending = [name for name in why if why[name]]
    while pending:
        name = pending.pop()
        for user in users.get(name, ()):
            if not why[user]:
                why[user] = why[name]
                pending.append(user)


def _refuse(where: str, why: Mapping[str, str | None], wanted: list[str]) -> None:
    """Raise FileError if a wanted name must not run."""
    for name in wanted:
        if why.get(name):
            raise FileError(f"{where} {why[name]}.")


def _node(name: str) -> str:
    """The node of a tensor or a control input."""
    return name.lstrip("^").split(":")[0]


def _called_functions(node: Any) -> list[str]:
    """Names of functions that a node calls: by its type, or in its attributes."""
    names = [node.op]
    for value in node.attr.values():
        names += [f.name for f in ([value.func] if value.HasField("func") else value.list.func)]
    return names
