"""Makes TensorFlow model files, good and bad: ``python -m tests.products.files.making_tf FOLDER NETWORK ...``."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import h5py
import tensorflow as tf
from tensorflow.python.framework import convert_to_constants as convert

from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from tests.products.files.hostile import ZOO, part
from tests.products.files.tensorflow.making_saved import graph_model, object_model

v1 = tf.compat.v1


def zoo(folder: Path, name: str, settings: dict[str, str]) -> None:
    """A zoo model in every kind of file: Keras' two, a SavedModel and one with an open batch, frozen graphs."""
    module = loading.load_pair(loading.pair_path(name))
    params = pairs.Params(loading.resolve(module, settings))
    model = module.build_tf(params)
    model.save(folder / f"{name}.keras")
    model.save(folder / f"{name}.h5")
    tf.saved_model.save(model, folder / f"{name}_saved")
    model.export(folder / f"{name}_open", verbose=False)
    specs = [tf.TensorSpec(i.shape, i.dtype, name=i.name) for i in module.inputs(params)]
    function = tf.function(lambda *x: model(*x, training=False)).get_concrete_function(*specs)
    for lowered, ending in ((True, "lowered"), (False, "frozen")):
        _, definition = convert.convert_variables_to_constants_v2_as_graph(function, lower_control_flow=lowered)
        (folder / f"{name}_{ending}.pb").write_bytes(definition.SerializeToString())


def graph(path: Path, build: Any) -> None:
    """A frozen graph of what this builds in v1 mode."""
    with v1.Graph().as_default() as made:
        build()
    path.write_bytes(made.as_graph_def().SerializeToString())


def x() -> Any:
    return v1.placeholder(tf.float32, (2, 3), name="x")


def loop(times: int) -> Any:
    """A product of (2, 3) and (3, 3) that many times."""
    weights = tf.ones((3, 3))
    return tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, y @ weights), (tf.constant(0), x()))


def bad_graphs(folder: Path) -> None:
    """Frozen graphs that are damaged, or none."""
    graph(folder / "custom.pb", lambda: tf.strings.length(tf.io.read_file("/etc/passwd")))
    graph(folder / "variable.pb", lambda: v1.get_variable("v", (3,)) + 1.0)
    graph(
        folder / "asks.pb",
        lambda: v1.placeholder(tf.float32, (None, 3), name="a/b") + v1.placeholder(tf.float32, None, name="c"),
    )
    v1.enable_control_flow_v2()
    graph(folder / "loop.pb", lambda: loop(1_000_000_000))
    v1.disable_control_flow_v2()
    graph(folder / "loop_v1.pb", lambda: loop(1_000_000_000))
    (folder / "custom.pb").write_bytes((folder / "custom.pb").read_bytes().replace(b"ReadFile", b"ReadFire"))
    node = part(1, b"x") + part(2, b"Placeholder")
    (folder / "damaged.pb").write_bytes(part(1, node) + part(1, node + b"\xff\xff\xff"))


class Two(tf.Module):
    """Two signatures."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(tf.ones((3, 3)))

    @tf.function(input_signature=[tf.TensorSpec((2, 3), tf.float32, name="x")])
    def once(self, x: Any) -> Any:
        return {"y": x @ self.w, "z": x + 1.0}

    @tf.function(input_signature=[tf.TensorSpec((2, 3), tf.float32, name="x")])
    def twice(self, x: Any) -> Any:
        return x @ self.w @ self.w


def saved(folder: Path) -> None:
    """SavedModels: two signatures, one whose variables are damaged, one cut short."""
    for name in ("two_saved", "damaged_saved", "cut_saved"):
        module = Two()
        tf.saved_model.save(module, folder / name, signatures={"one": module.once, "two": module.twice})
    data = folder / "damaged_saved" / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:10])
    whole = folder / "cut_saved" / "saved_model.pb"
    whole.write_bytes(whole.read_bytes()[:-50])


def bad_keras(folder: Path) -> None:
    """Keras files with code, with a user's classes, with tensors elsewhere, and with implausibly large tensors."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((3,)), layers.Lambda(lambda t: t * 2)])
    model.save(folder / "lambda.keras")
    model.save(folder / "lambda.h5")

    @tf.keras.utils.register_keras_serializable("mine")
    class Mine(layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs

    tf.keras.Sequential([layers.Input((3,)), Mine()]).save(folder / "custom.keras")
    plain = tf.keras.Sequential([layers.Input((3,), batch_size=2), layers.Dense(4)])
    plain.save(folder / "plain.keras")
    plain.save_weights(folder / "only.weights.h5")
    with zipfile.ZipFile(folder / "plain.keras") as old, zipfile.ZipFile(folder / "wide.keras", "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "config.json":
                config = json.loads(text)
                config["config"]["layers"][1]["config"]["units"] = 40_000_000_000
                text = json.dumps(config).encode()
            new.writestr(name, text)
    whole = (folder / "lambda.h5").read_bytes()
    (folder / "cut.h5").write_bytes(whole[: len(whole) * 2 // 3])
    kernels = {
        "huge": lambda group: group.create_dataset("kernel", (1 << 20, 1 << 20), "f4", chunks=(1 << 10, 1 << 10)),
        "link": lambda group: group.__setitem__("kernel", h5py.ExternalLink("/etc/shadow", "/")),
        "elsewhere": lambda group: group.create_dataset("kernel", (3, 4), "f4", external=[("/etc/shadow", 0, 48)]),
    }
    for name, put in kernels.items():
        plain.save(folder / f"{name}.h5")
        with h5py.File(folder / f"{name}.h5", "r+") as file:
            found: list[Any] = []
            file.visititems(lambda path, item, found=found: found.append(item) if path.endswith("/kernel") else None)
            group = found[0].parent
            del group["kernel"]
            put(group)


def main(folder: str, *names: str) -> None:
    """Make everything, of these networks."""
    here = Path(folder)
    for name in names:
        zoo(here, name, ZOO[name])
    bad_graphs(here)
    saved(here)
    bad_keras(here)
    graph_model(here / "v1_saved", batch=None)
    object_model(here / "words_saved")


if __name__ == "__main__":
    main(*sys.argv[1:])
