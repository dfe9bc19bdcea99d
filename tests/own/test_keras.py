"""One Keras factory for both frameworks: the same layers by the same names, the same work, every counter to residual 0."""

from __future__ import annotations

import pytest

from tests.own.conftest import Repository

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

KERAS = """
    import keras
    from keras import layers

    class Gate(layers.Layer):
        def __init__(self):
            super().__init__(name="gate")
            self.attribute = layers.Dense(5, name="by_its_own_name")

        def call(self, x):
            return keras.ops.sigmoid(self.attribute(x)) * x

    def block():
        x = i = keras.Input((9, 7, 4))
        x = layers.Conv2D(6, 3, name="plain")(x)
        x = layers.Conv2D(6, 3, groups=2, name="grouped")(x)
        x = layers.DepthwiseConv2D(3, name="depthwise")(x)
        return keras.Model(i, x, name="block")

    def net():
        image, words = keras.Input((9, 7, 4), name="image"), keras.Input((5,), name="words")
        x = block()(image)
        x = layers.BatchNormalization(name="norm")(x)
        x = layers.GlobalAveragePooling2D()(x)
        again = layers.Dense(5, name="again")
        x = Gate()(again(layers.Dense(5, name="first")(x)) + again(words))
        return keras.Model([image, words], [x, layers.Softmax()(x)])
"""

LAZY = """
    def net():
        import keras
        a, b = keras.Input((3,)), keras.Input((4,))
        unbuilt = keras.Sequential([keras.layers.Dense(2), keras.layers.LSTM(3)])

        class Named(keras.Model):
            def __init__(self):
                super().__init__()
                self.inner = keras.Model({"b": b, "a": a}, keras.layers.Dense(5)(a) + keras.layers.Dense(5)(b))
                self.unbuilt = unbuilt

            def call(self, one, two):
                return self.unbuilt(self.inner({"a": one, "b": two})[:, None])
        return Named()
"""

OTHER = """
    import os
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras

    def net():
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
"""

# (1, 9, 7, 4): 7 x 5 places, then 5 x 3, then 3 x 1; two multiply-adds' worth of FLOP each
PLAIN, GROUPED, DEPTHWISE = 2 * 7 * 5 * 6 * 3 * 3 * 4, 2 * 5 * 3 * 6 * 3 * 3 * 3, 2 * 3 * 1 * 6 * 3 * 3
WORK = {
    "block.plain": PLAIN,
    "block.grouped": GROUPED,
    "block.depthwise": DEPTHWISE,
    "first": 2 * 6 * 5,
    "again": 2 * (2 * 5 * 5),  # called twice
    "gate.by_its_own_name": 2 * 5 * 5,
}


def test_a_keras_factory_for_both(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # whatever this machine's Keras runs on
    repository.write(net=KERAS)
    data = repository.report("net.net", "--tf", "net:net", "--torch", "net:net")
    work = sum(WORK.values())
    assert {t["name"]: t["totals"]["matmul"] for t in data["traces"]} == {"trace@tf": work, "trace@torch": work}
    assert {t["device"] for t in data["traces"]} == {"graph", "cpu"}
    assert [item for item in (*data["traces"], *data["ledgers"]) if "keras" not in item["versions"]] == []
    layers = {row["layer"]: row for row in data["layers"] if row["layer"] in WORK}
    assert {name: row["work_by_framework"] for name, row in layers.items()} == {
        n: {"tf": w, "torch": w} for n, w in WORK.items()
    }
    for counter in ("fvcore", "flop_counter"):
        assert {name: row["counters"][counter] for name, row in layers.items()} == WORK
    assert [row for row in data["alignment"] if row["tf"] != row["torch"]] == []
    assert {row["by"].partition("+")[0] for row in data["alignment"]} == {"name"}
    causes = {c["counter"]: {x["cause"]: x["amount"] for x in c["causes"]} for c in data["verdict"]["counters"]}
    assert causes["thop"] == {"call-not-seen": work}
    for counter in ("function", "frozen", "runmeta"):  # Keras puts a grouped convolution into a jit-compiled function
        assert causes[f"tf.profiler@{counter}"]["body-not-entered"] == GROUPED


def test_what_keras_makes_only_when_it_is_called(repository: Repository) -> None:
    """Keras is imported when the model is made, and weights are made when it is first called: neither is work of a call."""
    repository.write(lazy=LAZY)
    data = repository.report("lazy.net", "--torch", "lazy:net", "--input", "1,3", "--input", "1,4")
    (trace,) = data["traces"]
    work = 2 * (3 * 5 + 4 * 5) + 2 * 5 * 2 + 2 * 4 * 3 * (2 + 3)
    assert (trace["device"], trace["complete"], trace["totals"]["matmul"]) == ("cpu", True, work)
    exact = {c["counter"]: c["exact"] for c in data["verdict"]["counters"]}
    assert exact == {"thop": False, "fvcore": True, "flop_counter": True}


def test_a_model_on_another_backend_is_refused(repository: Repository) -> None:
    repository.write(other=OTHER)
    assert repository.refusal("--torch", "other:net", "--counter", "flop_counter") == (
        "the factory other:net made a Keras model on the backend tensorflow, not on torch: do not change KERAS_BACKEND "
        "before you import Keras, so that the model runs on the framework that you asked for."
    )
