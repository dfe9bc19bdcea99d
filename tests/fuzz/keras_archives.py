"""Keras archives: what was checked is what Keras is handed, and it names nothing but layers."""

from __future__ import annotations

import io
import json
import os
import zipfile
from functools import cache
from pathlib import Path
from random import Random

from . import mutate, zips
from .archives import MARK
from .handed import handed, patched
from .harness import Target, Wrong, drawn

DENSE = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 2}, "registered_name": None}
CONFIG = {
    "module": "keras", "class_name": "Sequential", "registered_name": None, "config": {"name": "s", "layers": [DENSE]},
}  # fmt: skip
LAYERS = mutate.words(
    "layers.Lambda Lambda keras.src.layers.core.lambda_layer keras builtins eval exec os system TFSMLayer keras>Lambda "
    "__lambda__ tensorflow io.write_file keras.utils get_file registered_name class_name module config Functional "
    "Dense layers keras.layers"
)


def _ready_keras() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import h5py  # noqa: F401
    import tensorflow as tf

    from reconcile.products.files.tensorflow import load_keras  # noqa: F401

    tf.keras.models.load_model  # noqa: B018  Keras is imported when it is asked for


@cache
def _keras() -> dict[str, bytes]:
    import h5py

    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file["layers/dense/vars/0"] = [[1.0, 2.0]]
    return {"metadata.json": b"{}", "config.json": json.dumps(CONFIG).encode(), "model.weights.h5": weights.getvalue()}


def keras_archive(rng: Random) -> bytes:
    """A .keras archive with another configuration in it, or hidden in it."""
    members = _keras()
    layer = {
        "module": "keras.layers", "class_name": "Lambda", "config": {"function": MARK.decode()}, "registered_name": None,
    }  # fmt: skip
    evil = {"config.json": json.dumps(CONFIG | {"config": {"layers": [layer]}}).encode(), "model.weights.h5": MARK * 9}
    if rng.random() < 0.5:
        return zips.mutated(rng, members, evil)
    if rng.random() < 0.5:
        made = {**members, "model.weights.h5": mutate.blob(rng, members["model.weights.h5"])}
    else:
        made = {**members, "config.json": mutate.tree(rng, CONFIG, LAYERS).encode("utf-8", "surrogatepass")}
    return zips.archive(zips.entries_of(made, rng))


def check_keras(data: bytes, folder: Path) -> None:
    """Raises Wrong where Keras would read what the checks have not, or a class that is not one of its layers'."""
    from reconcile.products.files.tensorflow import load_keras

    path = folder / "net.keras"
    path.write_bytes(data)
    with patched("keras.models.load_model", "tensorflow.keras.models.load_model"):
        found = handed("tf", path, lambda file: load_keras.load(file, None))
    if found is None:
        return
    with zipfile.ZipFile(io.BytesIO(found)) as archive:
        config = archive.read("config.json")
    if MARK in config and b"Lambda" in config:
        raise Wrong("Keras reads a configuration that is forbidden")
    pending = [json.loads(config)]
    while pending:
        item = pending.pop()
        pending += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        if isinstance(item, dict) and isinstance(item.get("class_name"), str):
            last = item["class_name"].replace(">", ".").rpartition(".")[2]
            if last.strip() in (
                "Lambda",
                "TFSMLayer",
                "__lambda__",
                "eval",
                "exec",
                "system",
                "write_file",
                "get_file",
            ):
                raise Wrong(f"Keras is handed a {last}")


TARGETS = (Target("keras", lambda: drawn(keras_archive), check_keras, _ready_keras, needs="tf"),)
