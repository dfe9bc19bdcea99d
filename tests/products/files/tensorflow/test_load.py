"""SavedModels and frozen graphs that reach out as they are loaded or run: confined as they are, they write nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.protocol import ModelFile
from reconcile.products.files.model_file import FileError
from reconcile.products.files.tensorflow import load as loader

tf = pytest.importorskip("tensorflow")

from tests.products.files.processes import found_by  # noqa: E402
from tests.products.files.tensorflow import making_saved as made  # noqa: E402

pytestmark = pytest.mark.frameworks

v1 = tf.compat.v1

HARM: dict[str, tuple[Callable[[Path], Path], Callable[[Any, Path], None]]] = {
    "restoring": (made.graph_model, made.restoring_saves),
    "main": (made.graph_model, made.saving_is_the_start("saved_model_main_op")),
    "legacy": (made.graph_model, made.saving_is_the_start("legacy_init_op")),
    "tables": (made.graph_model, made.saving_is_the_start("table_initializer")),
    "signature": (made.graph_model, made.start_by_signature),
    "function": (made.object_model, made.hidden_function),
    "another": (made.graph_model, made.restores_another),
}


def load(path: Path, trusted: bool = False) -> Any:
    return loader.load(ModelFile(str(path), "saved_model" if path.is_dir() else "graph_def", 0, trusted), None)[0]


def test_what_would_write_as_it_is_loaded(tmp_path: Path) -> None:
    for name, (make, change) in HARM.items():
        with made.changed(make(tmp_path / name)) as meta:
            change(meta, tmp_path / "mark")
    said = found_by("loading", tmp_path, "tf", *HARM)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(HARM)
    for name in HARM:
        assert said[name].startswith(f"{name} cannot be loaded: raised "), said[name]


@pytest.mark.parametrize("name", ["restoring", "function"])
def test_trusted_it_would_have(tmp_path: Path, name: str) -> None:
    make, change = HARM[name]
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


def test_a_function_named_like_an_op_and_an_op_of_a_library(tmp_path: Path) -> None:
    graph = v1.GraphDef()
    graph.node.add(name="w", op="mine")
    path = tmp_path / "m.pb"
    path.write_bytes(graph.SerializeToString())
    with pytest.raises(FileError, match=r"^m\.pb holds the op mine, which this TensorFlow does not have"):
        load(path)
