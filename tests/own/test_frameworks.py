"""One framework or both: TensorFlow models of every kind, and a pair of factories."""

from __future__ import annotations

import pytest

from tests.own.conftest import Repository

pytestmark = pytest.mark.frameworks

KERAS = """
    import tensorflow as tf

    layers = tf.keras.layers

    def sequential():
        return tf.keras.Sequential([layers.Dense(4, name="first"), layers.Dense(3, name="second")])

    def functional():
        a, b = tf.keras.Input((5,), name="a"), tf.keras.Input((5,), name="b")
        return tf.keras.Model({"a": a, "b": b}, layers.Dense(2)(a + b)), {"a": tf.ones((2, 5)), "b": tf.ones((2, 5))}

    class Subclass(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = layers.Embedding(20, 4, name="embedding")
            self.parts = [layers.Dense(3, name="dense")]

        def call(self, ids, weights):
            return {"out": self.parts[0](self.embedding(ids)) * weights[..., None]}

    def function():
        w = tf.Variable(tf.ones((5, 4)))
        return (lambda x, more: {"o": tf.matmul(x, w) + more["y"][0]}), [tf.ones((2, 5)), {"y": (tf.ones((2, 4)),)}]

    def net():
        parts = [layers.Conv2D(8, 3, name="conv"), layers.Flatten(), layers.Dense(4, name="fc")]
        return tf.keras.Sequential(parts), tf.ones((1, 9, 8, 3))
"""

TORCH = """
    from collections import OrderedDict
    from torch import nn, ones

    def net():
        parts = OrderedDict(conv=nn.Conv2d(3, 8, 3), flat=nn.Flatten(), fc=nn.Linear(8 * 7 * 6, 4), extra=nn.Linear(4, 2))
        return nn.Sequential(parts), ones(1, 3, 9, 8)
"""

CASES = [
    ("sequential", ("2,5",), 2 * (5 * 4 + 4 * 3), "float32 (2, 5)"),
    ("functional", (), 2 * 5 * 2, "a=float32 (2, 5), b=float32 (2, 5)"),
    ("functional", ("b=3,5", "a=3,5"), 3 * 5 * 2, "b=float32 (3, 5), a=float32 (3, 5)"),
    ("Subclass", ("2,6:int32", "2,6"), 2 * 6 * 4 * 3, "int32 (2, 6), float32 (2, 6)"),
    ("Subclass", ("2,6:int32", "weights=2,6"), 2 * 6 * 4 * 3, "int32 (2, 6), weights=float32 (2, 6)"),
    ("function", (), 2 * 5 * 4, "float32 (2, 5), {y: (float32 (2, 4))}"),
]


@pytest.mark.parametrize(("name", "inputs", "macs", "said"), CASES)
def test_a_tensorflow_model(repository: Repository, name: str, inputs: tuple[str, ...], macs: int, said: str) -> None:
    repository.write(models=KERAS)
    asked = [word for text in inputs for word in ("--input", text)]
    data = repository.report(f"models.{name}", "--tf", f"models:{name}", *asked)
    (trace,) = data["traces"]
    assert trace["totals"]["matmul"] == 2 * macs
    assert [x["counter"] for x in data["ledgers"]] == [
        "tf.profiler@function",
        "tf.profiler@frozen",
        "tf.profiler@runmeta",
    ]
    assert trace["notes"] == [f"called with {said}"]


def test_layers_of_a_subclass_are_found_before_it_was_ever_called(repository: Repository) -> None:
    repository.write(models=KERAS)
    asked = ("--tf", "models:Subclass", "--input", "2,6:int32", "--input", "2,6", "--counter", "tf.profiler@frozen")
    rows = {row["layer"]: row["work"] for row in repository.report("models.Subclass", *asked)["layers"]}
    assert rows["dense"] == 2 * 2 * 6 * 4 * 3


def test_two_factories_are_a_pair_and_a_layer_that_only_one_has_is_a_row_of_its_own(repository: Repository) -> None:
    repository.write(keras_net=KERAS, torch_net=TORCH)
    data = repository.report("keras_net.net+torch_net.net", "--tf", "keras_net:net", "--torch", "torch_net:net")
    assert data["params"] == {"tf": "keras_net:net", "torch": "torch_net:net"}
    conv, fc, extra = 2 * 7 * 6 * 8 * 27, 2 * 8 * 7 * 6 * 4, 2 * 4 * 2
    rows = {row["layer"]: row["work_by_framework"] for row in data["layers"]}
    assert rows["conv"] == {"tf": conv, "torch": conv}
    assert rows["fc"] == {"tf": fc, "torch": fc}
    assert rows["extra"] == {"tf": 0, "torch": extra}
    between = next(s for s in data["statements"] if (s["from"], s["to"]) == ("trace@tf", "trace@torch"))
    assert [(a["cause"], a["layer"], a["amount"]) for a in between["adjustments"]] == [
        ("real-work-differs", "extra", extra)
    ]
