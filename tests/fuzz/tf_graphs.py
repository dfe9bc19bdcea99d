"""TensorFlow's protobufs with fields changed: a frozen graph, a SavedModel. Only the checks run; no session is started.

Accepted graphs are compared with the declarations of their ops: none of them may have an input or attribute that is a file,
a place or a library, but where a SavedModel restores its own variables; and nothing that runs as it is loaded may save.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from . import mutate
from .handed import CANNOT_BE_READ
from .harness import Target, Wrong, drawn
from .reach import RESTORING, dangerous, needed, none_reaches

PLACE = "escaped"


class Accepted(BaseException):
    """The checks let this pass to TensorFlow: the graph, or the SavedModel in the folder."""

    def __init__(self, handed: Any) -> None:
        super().__init__()
        self.data: bytes = (
            Path(handed, "saved_model.pb").read_bytes() if isinstance(handed, str) else handed.SerializeToString()
        )


def _accept(handed: Any, *_args: Any, **_named: Any) -> None:
    raise Accepted(handed)


def ready() -> None:
    """Import TensorFlow and make the graphs."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    from reconcile.products.files.tensorflow import load_graph, load_saved  # noqa: F401

    tf.saved_model.load  # noqa: B018  imported when it is asked for
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_inter_op_parallelism_threads(1)
    dangerous()


@cache
def _graphs() -> list[Any]:
    """Frozen graphs: a product, a loop in functions, the same lowered, a sampler that reads no file."""
    import tensorflow as tf
    from tensorflow.python.framework import convert_to_constants as convert

    def loop(x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y @ tf.ones((3, 3))), (tf.constant(0), x))[1]

    made = []
    for build, lowered in ((lambda x: tf.nn.relu(x @ tf.ones((3, 3))), True), (loop, True), (loop, False)):
        function = tf.function(build).get_concrete_function(tf.TensorSpec((2, 3), name="x"))
        made.append(convert.convert_variables_to_constants_v2_as_graph(function, lower_control_flow=lowered)[1])
    return made


@cache
def _saved() -> list[Any]:
    """SavedModels: TensorFlow 2's with a variable, TensorFlow 1's with an initialiser."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    v1 = tf.compat.v1
    module = tf.Module()
    module.w = tf.Variable(tf.ones((3, 3)))
    module.call = tf.function(lambda x: x @ module.w, input_signature=[tf.TensorSpec((2, 3), name="x")])
    made = []
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, f"{folder}/two", signatures=module.call)
        with v1.Graph().as_default(), v1.Session() as session:
            batch = v1.placeholder(tf.float32, (2, 3), name="x")
            product = batch @ v1.get_variable("w", (3, 3), use_resource=False)
            session.run(v1.global_variables_initializer())
            tables = v1.tables_initializer()
            builder = v1.saved_model.builder.SavedModelBuilder(f"{folder}/one")
            signature = v1.saved_model.predict_signature_def({"x": batch}, {"y": product})
            builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, main_op=tables)
            builder.save()
        for name in ("one", "two"):
            saved = saved_model_pb2.SavedModel()
            saved.ParseFromString(Path(folder, name, "saved_model.pb").read_bytes())
            made.append(saved)
    return made


@cache
def _words() -> tuple[str, ...]:
    import tensorflow as tf

    names = [name for name in dir(tf.raw_ops) if name[0].isupper()]
    return (
        *names,
        *sorted(dangerous()) * 3,
        "x",
        "^x",
        "saver_filename",
        "save/Const",
        "loop",
        "serving_default",
        PLACE,
    )


def _reach(rng: Random, graph: Any) -> str:
    """Put an op that reaches out into a graph, or one of its functions; its name."""
    import tensorflow as tf

    functions = list(graph.library.function)
    into = rng.choice(functions).node_def if functions and rng.random() < 0.3 else graph.node
    name = f"reach{len(into)}"
    path = into.add(name=name + "/path", op="Const")
    path.attr["dtype"].type = 7
    path.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(PLACE))
    op = rng.choice(("SaveV2", "Save", "WriteFile", "ReadFile", *sorted(dangerous()), rng.choice(_words())))
    into.add(name=name, op=op, input=[path.name] * rng.choice((1, 2, 3)))
    if len(graph.node):
        rng.choice(graph.node).input.append("^" + name)
    return name


def _more_graph(rng: Random, graph: Any) -> None:
    _reach(rng, graph)


def _more_saved(rng: Random, saved: Any) -> None:
    """An op that reaches out, where it runs as the model is loaded, saved, or called."""
    if not saved.meta_graphs:
        return
    meta = rng.choice(saved.meta_graphs)
    if not meta.graph_def.node:
        return
    name = _reach(rng, meta.graph_def)
    saver, kind = meta.saver_def, rng.randrange(6)
    if kind == 0:
        saver.restore_op_name = name
    elif kind == 1:
        saver.save_tensor_name = name + ":0"
    elif kind == 2:
        meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = name
    elif kind == 3:
        meta.collection_def["saved_model_main_op"].node_list.value[:] = [name]
    elif kind == 4:
        meta.collection_def["legacy_init_op"].node_list.value[:] = [rng.choice((name, saver.save_tensor_name))]
    else:
        for node in meta.graph_def.node:
            if node.name in (saver.restore_op_name, saver.save_tensor_name.split(":")[0]):
                node.input.append("^" + name)


def graphs(rng: Random) -> bytes:
    """A frozen graph with fields changed."""
    return mutate.message(rng, rng.choice(_graphs()), _words(), _more_graph).SerializeToString()


def saved_models(rng: Random) -> bytes:
    """A SavedModel with fields changed."""
    return mutate.message(rng, rng.choice(_saved()), _words(), _more_saved).SerializeToString()


def _made(bases: Callable[[], object], make: Callable[[Random], bytes]) -> st.SearchStrategy[bytes]:
    bases()  # a session runs: before the first case
    return drawn(make)


def _accepted(load: Any, patched: str) -> bytes | None:
    """What TensorFlow is handed; None for what is refused by a sentence."""
    from reconcile.products.files.model_file import FileError

    try:
        with mock.patch(patched, _accept):
            load()
    except FileError as error:
        if "\n" in str(error):
            raise Wrong("its sentence has several lines") from error
        return None
    except CANNOT_BE_READ:
        return None
    except Accepted as accepted:
        return accepted.data
    raise Wrong("nothing was loaded, and nothing said")


def check_graph(data: bytes, folder: Path) -> None:
    """Raises Wrong for a graph that is let pass with an op that reaches out."""
    from tensorflow.core.framework import graph_pb2

    from reconcile.core.protocol import ModelFile
    from reconcile.products.files.tensorflow import load_graph

    path = folder / "net.pb"
    path.write_bytes(data)
    file = ModelFile(str(path), "graph_def", len(data))
    handed = _accepted(lambda: load_graph.graph_def(file, None), "tensorflow.import_graph_def")
    if handed is not None:
        graph = graph_pb2.GraphDef.FromString(handed)
        none_reaches([*graph.node, *(node for function in graph.library.function for node in function.node_def)], "")


def check_saved(data: bytes, folder: Path) -> None:
    """Raises Wrong for a SavedModel that is let pass and would reach out as it is loaded, or when it is called."""
    from tensorflow.core.protobuf import saved_model_pb2

    from reconcile.core.protocol import ModelFile
    from reconcile.products.files.tensorflow import load_saved

    (folder / "saved_model.pb").write_bytes(data)
    file = ModelFile(str(folder), "saved_model", len(data))
    handed = _accepted(lambda: load_saved.saved_model(file, None), "tensorflow.saved_model.load")
    for meta in saved_model_pb2.SavedModel.FromString(handed).meta_graphs if handed is not None else ():
        graph, saver = meta.graph_def, meta.saver_def
        initial = [name for key, held in meta.collection_def.items() if "op" in key for name in held.node_list.value]
        initial += [
            info.name
            for key, held in meta.signature_def.items()
            if key.startswith("__")
            for info in held.outputs.values()
        ]
        none_reaches(needed(graph, initial), ", which runs as the model is loaded")
        none_reaches(needed(graph, [saver.restore_op_name]), ", which runs as variables are restored", RESTORING)
        saving = needed(graph, [saver.save_tensor_name, saver.restore_op_name])
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        none_reaches((node for node in nodes if not any(node is other for other in saving)), ", which may be called")


TARGETS = (
    Target("graphs", lambda: _made(_graphs, graphs), check_graph, ready, needs="tf"),
    Target("saved_models", lambda: _made(_saved, saved_models), check_saved, ready, needs="tf"),
)
