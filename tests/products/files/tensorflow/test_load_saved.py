"""SavedModels and frozen graphs that reach out as they are loaded or run, and which ops may stand in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconcile import work
from reconcile.core.protocol import ModelFile
from reconcile.products.files.model_file import FileError
from reconcile.products.files.tensorflow import load_graph, load_saved
from reconcile.products.files.tensorflow import op_names as tf_op_names
from reconcile.products.files.tensorflow import ops as tf_ops

tf = pytest.importorskip("tensorflow")

from tests.products.files.tensorflow import making_saved as made  # noqa: E402

pytestmark = pytest.mark.frameworks

v1 = tf.compat.v1

SAVES = "holds the op SaveV2, which may touch files, processes or other machines; pass --trust-file to allow it."
HARM: dict[str, tuple[Callable[[Path], Path], Callable[[Any, Path], None], str]] = {
    "restoring": (made.graph_model, made.restoring_saves, SAVES),
    "main": (made.graph_model, made.saving_is_the_start("saved_model_main_op"), SAVES),
    "legacy": (made.graph_model, made.saving_is_the_start("legacy_init_op"), SAVES),
    "tables": (made.graph_model, made.saving_is_the_start("table_initializer"), SAVES),
    "signature": (made.graph_model, made.start_by_signature, SAVES),
    "function": (made.object_model, made.hidden_function, SAVES),
    "another": (
        made.graph_model,
        made.restores_another,
        "restores save/RestoreV2 from a file that the model chooses; pass --trust-file to allow it.",
    ),
}


def load(path: Path, trusted: bool = False) -> Any:
    kind, loader = ("saved_model", load_saved.saved_model) if path.is_dir() else ("graph_def", load_graph.graph_def)
    return loader(ModelFile(str(path), kind, 0, trusted), None)[0]


@pytest.mark.parametrize("name", HARM)
def test_what_would_write_as_it_is_loaded(tmp_path: Path, name: str) -> None:
    make, change, said = HARM[name]
    path, mark = make(tmp_path / name), tmp_path / "mark"
    with made.changed(path) as meta:
        change(meta, mark)
    with pytest.raises(FileError, match=re.escape(f"{name} {said}")):
        load(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["restoring", "function"])
def test_trusted_it_would_have(tmp_path: Path, name: str) -> None:
    make, change, _ = HARM[name]
    path = make(tmp_path / name)
    with made.changed(path) as meta:
        change(meta, tmp_path / "mark")
    load(path, trusted=True)
    assert {each.name for each in tmp_path.glob("mark*")} == {"mark.index", "mark.data-00000-of-00001"}


def test_honest_ones_load_with_their_values(tmp_path: Path) -> None:
    x = tf.random.normal((2, 8))
    model = load(made.graph_model(tmp_path / "graph"))
    weights = tf.train.load_variable(str(tmp_path / "graph" / "variables" / "variables"), "w")
    (y,) = tf.nest.flatten(model(x))
    tf.debugging.assert_near(y, x @ weights)
    words = load(made.object_model(tmp_path / "objects"))
    (y,) = tf.nest.flatten(words(tf.constant(["a", "b", "c", "a", "b"])))
    assert y.numpy().tolist() == [[1.0, 1.0]] * 5


def pb(path: Path, build: Callable[[], Any]) -> Path:
    """A frozen graph of what this builds."""
    with v1.Graph().as_default() as graph:
        build()
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def sampler(file: str) -> Any:
    return lambda: v1.raw_ops.FixedUnigramCandidateSampler(
        true_classes=tf.constant([[0]], tf.int64), num_true=1, num_sampled=1, unique=False, range_max=2,
        vocab_file=file, unigrams=[] if file else [1.0, 1.0],
    )  # fmt: skip


def vocabulary(file: str) -> Any:
    return lambda: v1.raw_ops.GenerateVocabRemapping(
        new_vocab_file=file, old_vocab_file=file, new_vocab_offset=0, num_new_vocab=1
    )


def region(file: str) -> Any:
    return lambda: tf.identity(v1.raw_ops.ImmutableConst(dtype=tf.float32, shape=[1], memory_region_name=file))


@pytest.mark.parametrize(
    ("op", "build"),
    [
        ("FixedUnigramCandidateSampler", sampler),
        ("GenerateVocabRemapping", vocabulary),
        ("ImmutableConst", region),
        ("DecodeProtoV2", lambda file: lambda: v1.raw_ops.DecodeProtoV2(
            bytes="", message_type="a", field_names=[], output_types=[], descriptor_source=file)),
        ("InitializeTableFromTextFileV2", lambda file: lambda: tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(file, tf.string, 0, tf.int64, 1), -1).lookup(tf.constant(["a"]))),
        ("RestoreV2", lambda file: lambda: v1.raw_ops.RestoreV2(
            prefix=file, tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.float32])),
    ],
)  # fmt: skip
def test_ops_that_open_a_file(tmp_path: Path, op: str, build: Any) -> None:
    path = pb(tmp_path / "opens.pb", build(str(tmp_path / "secret")))
    with pytest.raises(
        FileError, match=rf"^opens\.pb holds the op {op}, which may touch files, .*pass --trust-file to allow it\.$"
    ):
        load(path)


def printing() -> Any:
    with tf.control_dependencies([tf.print("a")]):
        return tf.identity(tf.constant(1.0))


def test_attributes_that_name_no_file(tmp_path: Path) -> None:
    load(pb(tmp_path / "sampler.pb", sampler("")))
    load(pb(tmp_path / "prints.pb", printing))
    load(pb(tmp_path / "text.pb", lambda: tf.strings.unicode_decode(["a"], "UTF-8").values))
    with pytest.raises(FileError, match=r"holds the op UnicodeDecode"):
        load(pb(tmp_path / "text.pb", lambda: tf.strings.unicode_decode(["a"], "../a").values))


def test_a_functions_attribute_that_its_caller_chooses() -> None:
    node = v1.NodeDef(name="p", op="PrintV2")
    assert tf_ops.forbidden(node) is None
    node.attr["output_stream"].s = b"file:///a"
    assert tf_ops.forbidden(node)
    node.attr["output_stream"].placeholder = "stream"
    assert tf_ops.forbidden(node)


def test_a_function_named_like_an_op_does_not_hide_it() -> None:
    node = v1.NodeDef(name="w", op="WriteFile")
    assert tf_ops.forbidden(node, frozenset(["WriteFile"]))
    assert tf_ops.forbidden(v1.NodeDef(name="w", op="mine"), frozenset(["mine"])) is None
    assert "which this TensorFlow does not have" in str(tf_ops.forbidden(v1.NodeDef(name="w", op="mine")))


@pytest.mark.parametrize(
    ("device", "allowed"),
    [
        ("", True),
        ("/cpu:0", True),
        ("/device:GPU:*", True),
        ("/job:localhost/replica:0/task:0/device:CPU:0", True),
        ("/job:worker/task:1", False),
        ("/job:worker/device:CPU:0", False),
        ("grpc://10.0.0.1:8470", False),
    ],
)
def test_devices(device: str, allowed: bool) -> None:
    why = tf_ops.forbidden(v1.NodeDef(name="m", op="MatMul", device=device))
    assert why == (
        None
        if allowed
        else f"places m on {device}, which is not a device of this machine; pass --trust-file to allow it"
    )


def test_the_list_holds_every_op_with_a_formula() -> None:
    """But for what reads a file into memory."""
    from tensorflow.python.framework import op_def_registry

    work.load()
    ours = {name for name in work.registered_formulas() if op_def_registry.get(name) is not None}
    assert ours - tf_op_names.COMPUTING == {"ImmutableConst"}


REACHES = re.compile("file|path|address|hostname|url|server|protocol|token|descriptor|memory_region|library|debug_ops")


def test_no_op_on_the_list_has_a_field_that_names_a_place() -> None:
    """By their names in TensorFlow's registry; a name that lies is what reading each of them was for."""
    from tensorflow.python.framework import op_def_registry

    held = {name: op_def_registry.get(name) for name in tf_op_names.COMPUTING}
    assert [name for name, op in held.items() if op is None] == []
    found = {
        (name, each.name)
        for name, op in held.items()
        for each in (*op.attr, *op.input_arg)
        if REACHES.search(each.name)
    }
    assert found == {("FixedUnigramCandidateSampler", "vocab_file"), ("CTCBeamSearchDecoder", "top_paths")}  # a number
    assert {
        "WriteFile",
        "PyFunc",
        "RemoteCall",
        "SaveV2",
        "XlaCallModule",
        "RpcClient",
        "Abort",
        "CopyHost",
    }.isdisjoint(held)
