"""SavedModels that mean harm, each made of an honest one by changing its saved_model.pb: all that any does is write ``mark``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

v1 = tf.compat.v1


def graph_model(path: Path, batch: int | None = 2) -> Path:
    """TensorFlow 1's: (batch, 8) by (8, 4), a variable that is restored."""
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (batch, 8), name="x")
        y = x @ v1.get_variable("w", (8, 4), use_resource=False)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y})
    return path


class Words(tf.Module):
    """A table of words, filled as it is loaded, before a product."""

    def __init__(self) -> None:
        super().__init__()
        words = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([0, 1]))
        self.table = tf.lookup.StaticHashTable(words, -1)
        self.w = tf.Variable(tf.ones((3, 2)))

    @tf.function(input_signature=[tf.TensorSpec([5], tf.string, name="words")])
    def lookup(self, words: Any) -> Any:
        return tf.one_hot(self.table.lookup(words) + 1, 3) @ self.w


def object_model(path: Path) -> Path:
    """TensorFlow 2's, with an object whose initializer runs as it is loaded."""
    words = Words()
    tf.saved_model.save(words, str(path), signatures=words.lookup)
    return path


@contextmanager
def changed(path: Path) -> Iterator[Any]:
    """The only graph of a SavedModel, to be changed in place."""
    file = path / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    yield saved.meta_graphs[0]
    file.write_bytes(saved.SerializeToString())


def saves(mark: Path, name: str = "evil") -> list[Any]:
    """Nodes that save a checkpoint to this place, the last of which does it."""
    with v1.Graph().as_default() as graph, v1.name_scope(name):
        v1.raw_ops.SaveV2(
            prefix=str(mark), tensor_names=["a"], shape_and_slices=[""], tensors=[tf.constant(1.0)], name="do"
        )
    return list(graph.as_graph_def().node)


def node(meta: Any, name: str) -> Any:
    """The node of this name."""
    return next(n for n in meta.graph_def.node if n.name == name)


def restoring_saves(meta: Any, mark: Path) -> None:
    """What restores the variables waits for what saves to another place."""
    meta.graph_def.node.extend(saves(mark))
    node(meta, meta.saver_def.restore_op_name).input.append("^evil/do")


def saving_is_the_start(collection: str) -> Callable[[Any, Path], None]:
    """What the saver depends on is named as what to run first."""

    def change(meta: Any, mark: Path) -> None:
        meta.graph_def.node.extend(saves(mark))
        node(meta, meta.saver_def.save_tensor_name.split(":")[0]).input.append("^evil/do")
        meta.collection_def[collection].node_list.value.append("evil/do")

    return change


def start_by_signature(meta: Any, mark: Path) -> None:
    """The same by a signature, of which TensorFlow runs the op that it names."""
    meta.graph_def.node.extend(saves(mark))
    node(meta, meta.saver_def.save_tensor_name.split(":")[0]).input.append("^evil/do")
    meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil/do"


def restores_another(meta: Any, mark: Path) -> None:
    """Variables are restored from a file that the model names."""
    del mark
    made = meta.graph_def.node.add(name="evil", op="Const")
    made.attr["dtype"].type = tf.string.as_datatype_enum
    made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto("/etc/passwd"))
    next(n for n in meta.graph_def.node if n.op == "RestoreV2").input[0] = "evil"


def hidden_function(meta: Any, mark: Path) -> None:
    """A function that the saver is said to call, and the start of an object does, without its name among the functions."""

    @tf.function
    def evil() -> None:
        tf.raw_ops.SaveV2(prefix=str(mark), tensor_names=["a"], shape_and_slices=[""], tensors=[tf.constant(1.0)])

    function = meta.graph_def.library.function.add()
    function.CopyFrom(evil.get_concrete_function().function_def)
    function.signature.name = "evil"
    call = meta.graph_def.node.add(name="evil", op="StatefulPartitionedCall")
    call.attr["f"].func.name = "evil"
    node(meta, meta.saver_def.save_tensor_name.split(":")[0]).input.append("^evil")
    objects = meta.object_graph_def.nodes
    starts = [child.node_id for each in objects for child in each.children if child.local_name == "_initialize"]
    for start in starts:
        objects[start].ClearField("function")
        objects[start].bare_concrete_function.concrete_function_name = "evil"
