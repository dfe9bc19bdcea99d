"""What a Keras file may name: Keras' own, exactly as Keras writes it, and an honest model of many kinds of layers loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest

from reconcile.core.protocol import ModelFile
from reconcile.products.files.model_file import FileError
from reconcile.products.files.tensorflow import load_keras
from reconcile.products.files.tensorflow.keras_config import check_config

tf = pytest.importorskip("tensorflow")

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings(
        "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
    ),  # Keras saves so
]

DENSE = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 3}, "registered_name": None}


def of(module: Any, name: Any, **more: Any) -> dict[str, Any]:
    """A node of a configuration."""
    return {"module": module, "class_name": name, "config": {}, "registered_name": None, **more}


def function(module: Any, name: Any, **more: Any) -> dict[str, Any]:
    return of(module, "function", config=name, **more)


CODE = "which runs code from the file; pass --trust-file to allow it."
FOREIGN = "which is not part of Keras. Write a factory that imports it and loads the file."

REFUSED = [
    (of("keras", "layers.Lambda"), f"the class layers.Lambda, {FOREIGN}"),
    (of("keras.src", "layers.Lambda"), f"the class layers.Lambda, {FOREIGN}"),
    (of("keras.layers", "Lambda"), f"holds a Lambda, {CODE}"),
    (of("keras.src.layers.core.lambda_layer", "Lambda"), f"holds a Lambda, {CODE}"),
    (of("keras.layers", "TFSMLayer"), f"holds a TFSMLayer, {CODE}"),
    (of("keras.src.export.tfsm_layer", "TFSMLayer"), f"holds a TFSMLayer, {CODE}"),
    (of("keras", "layers.TFSMLayer"), f"the class layers.TFSMLayer, {FOREIGN}"),
    (of("keras.layers", "TorchModuleWrapper"), f"holds a TorchModuleWrapper, {CODE}"),
    (of("keras.layers", "JaxLayer"), f"holds a JaxLayer, {CODE}"),
    (of("keras.layers", "TFOpLambda"), f"holds a TFOpLambda, {CODE}"),
    (of(None, "TFOpLambda"), f"holds a TFOpLambda, {CODE}"),
    (of(None, "__lambda__", config={"value": "4wE="}), f"holds a __lambda__, {CODE}"),
    (of(None, "mine>Lambda"), f"holds a mine>Lambda, {CODE}"),
    (of(None, "__typespec__", spec_name="RaggedTensorSpec"), f"holds a __typespec__, {CODE}"),
    (of("os", "system"), f"the class system, {FOREIGN}"),
    (of("builtins", "eval"), f"the class eval, {FOREIGN}"),
    (of("tensorflow.io", "write_file"), f"the class write_file, {FOREIGN}"),
    (of("keras.src.utils.file_utils", "get_file"), f"the class get_file, {FOREIGN}"),
    (of("keras.layers", "Dense", registered_name="mine>Dense"), f"the class mine>Dense, {FOREIGN}"),
    (of("keras.utils", "FeatureSpace"), f"the class FeatureSpace, {FOREIGN}"),
    (of("keras.callbacks", "ModelCheckpoint"), f"the class ModelCheckpoint, {FOREIGN}"),
    (of("keras.layers", "deserialize"), f"the class deserialize, {FOREIGN}"),
    (of("keras.src.ops.numpy", "backend"), f"the class backend, {FOREIGN}"),
    (of("keras.src.ops.numpy", "KerasTensor"), f"the class KerasTensor, {FOREIGN}"),
    (of(None, "deserialize"), f"the class deserialize, {FOREIGN}"),
    (of(None, "keras_export"), f"the class keras_export, {FOREIGN}"),
    (of(["keras"], "Dense"), f"the class Dense, {FOREIGN}"),
    (of("keras.layers", ["Dense"]), "the class ['Dense'], "),
    (of(None, {"a": 1}), "the class {'a': 1}, "),
    (function("keras.utils", "get_file"), f"the function get_file, {FOREIGN}"),
    (function("keras.utils", "plot_model"), f"the function plot_model, {FOREIGN}"),
    (function("keras.applications", "ResNet50"), f"the function ResNet50, {FOREIGN}"),
    (function("keras.visualization", "plot_image_gallery"), f"the function plot_image_gallery, {FOREIGN}"),
    (function("keras.activations", "deserialize"), f"the function deserialize, {FOREIGN}"),
    (function("keras", "activations.relu"), f"the function activations.relu, {FOREIGN}"),
    (function("builtins", "eval"), f"the function eval, {FOREIGN}"),
    (function("builtins", "Adam"), f"the function Adam, {FOREIGN}"),
    (function("os", "system"), f"the function system, {FOREIGN}"),
    (function("keras.activations", "relu", registered_name="mine>relu"), f"the function relu, {FOREIGN}"),
    (function("keras.activations", ["relu"]), "the function ['relu'], "),
    (of("keras.layers", "StringLookup", config={"vocabulary": "/etc/passwd"}), "makes Keras read the file /etc/passwd; "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "said"), REFUSED, ids=[f"{n['module']}-{n['class_name']}-{i}" for i, (n, _) in enumerate(REFUSED)]
)
@pytest.mark.parametrize("deep", [False, True])
def test_what_a_configuration_must_not_name(node: Any, said: str, deep: bool) -> None:
    config = {**DENSE, "config": {"units": 3, "inside": [{"activation": node}]}} if deep else node
    with pytest.raises(FileError) as caught:
        check_config("m.keras", config)
    assert str(caught.value).startswith("m.keras ")
    assert said in str(caught.value)


def test_what_it_may() -> None:
    check_config("m.keras", [
        DENSE, of("keras.src.layers.core.dense", "Dense"), of(None, "Dense"), of("keras", "Sequential"),
        of("keras.src.models.functional", "Functional", registered_name="Functional"), of("keras", "DTypePolicy"),
        of("keras.initializers", "Zeros"), of("keras.optimizers.schedules", "ExponentialDecay"),
        of("keras.src.ops.numpy", "Add", registered_name="Add"), of(None, "__slice__"),
        of("keras._legacy.layers", "AlphaDropout"), of("keras.layers", "AlphaDropout"),
        function("builtins", "relu"), function("keras.activations", "gelu"), function("keras.ops", "silu"),
        function("builtins", "mean_squared_error", registered_name="mean_squared_error"),
        of("keras.layers", "StringLookup", config={"vocabulary": ["a", "b"]}),
    ])  # fmt: skip
    mine = {"loss": function(None, "mine", registered_name="mine>loss")}
    check_config("m.keras", {**DENSE, "compile_config": mine})  # which is not read
    with pytest.raises(FileError):
        check_config("m.keras", {**DENSE, "config": {"layer": {**DENSE, "compile_config": mine}}})


def many(operations: bool) -> Any:
    """A model of many kinds of layers, compiled with a function that no file holds."""
    keras, layers = tf.keras, tf.keras.layers
    x = start = keras.Input((8, 8, 3), batch_size=2)
    x = layers.Conv2D(4, 3, activation="relu", kernel_regularizer="l2", kernel_constraint="max_norm")(x)
    x = layers.Activation("swish")(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(5, 3)(layers.DepthwiseConv2D(3)(x))
    if operations:
        x = keras.ops.relu(x + 1.0)[:, :4] * 2
    x = layers.Dense(4, activation=keras.activations.gelu, kernel_initializer=keras.initializers.HeNormal())(x)
    x = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(layers.Reshape((-1, 4))(x))
    x = layers.TimeDistributed(layers.Dense(2))(x)
    x = layers.MultiHeadAttention(2, 2)(x, x)
    x = layers.RNN(layers.StackedRNNCells([layers.LSTMCell(3), layers.GRUCell(2)]))(x)
    inner = keras.Sequential([keras.Input((2,)), layers.Dense(3, dtype="mixed_float16"), layers.LeakyReLU()])
    x = layers.Concatenate()([inner(x), layers.Dropout(0.1)(x)])
    model = keras.Model(start, layers.Softmax()(x))
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)), loss=mine)
    return model


def mine(truth: Any, found: Any) -> Any:
    return truth - found


def load(path: Path, kind: str) -> Any:
    file = ModelFile(str(path), kind, path.stat().st_size)
    return load_keras.load(file, None)[0]


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
@pytest.mark.parametrize(
    ("name", "kind"), [("many.keras", "keras"), pytest.param("many.h5", "keras_h5", marks=pytest.mark.slow)]
)
def test_an_honest_model_of_many_layers_loads(tmp_path: Path, name: str, kind: str) -> None:
    model = many(operations=kind == "keras")  # HDF5 has none of them
    model.save(tmp_path / name)
    x = tf.random.normal((2, 8, 8, 3))
    tf.debugging.assert_near(load(tmp_path / name, kind)(x), model(x))


def test_hdf5_is_read_as_hdf5(tmp_path: Path) -> None:
    """One file can be HDF5 and a zip archive at once, and Keras chooses by the name."""
    path = tmp_path / "other.keras"
    tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)]).save(path)
    with h5py.File(tmp_path / "inner", "w", userblock_size=512) as file:
        file.attrs["model_config"] = "{}"
    path.write_bytes((tmp_path / "inner").read_bytes() + path.read_bytes())
    assert tf.keras.models.load_model(path, compile=False).layers  # which is not what was looked through
    with pytest.raises(FileError, match=r"^other\.keras is an HDF5 file, .*: rename it so that it ends in \.h5\.$"):
        load(path, "keras_h5")
