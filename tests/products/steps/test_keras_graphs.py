"""reconcile.keras.Flops in ``fit`` on TensorFlow, whose step is one graph: a signature is counted once; it trains as bare."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

from tests.products.steps.keras_programs import A, B, C, batch, run_program

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

ROWS = 10
PROGRAM = f"""
import json
import keras, numpy as np, tensorflow as tf
from reconcile.keras import Flops

x, y = np.random.RandomState(0).normal(size=({ROWS}, {A})).astype("float32"), np.arange({ROWS}) % {C}
pairs = tf.data.Dataset.from_tensor_slices((x[:8], y[:8])).batch(4, drop_remainder=True)

class Twice(keras.Sequential):
    def train_step(self, data):
        images, labels = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=labels, y_pred=self(images, training=True) + self(images, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {{"loss": loss}}

class Own(keras.Sequential):
    def make_train_function(self, force=False):
        return super().make_train_function(force)

def fit(kind=keras.Sequential, data=(x, y), counted=True, compiled={{}}, **options):
    keras.utils.set_random_seed(0)
    layers = keras.layers.Dense({B}, activation="relu"), keras.layers.Dropout(0.5), keras.layers.Dense({C})
    model = kind([keras.Input(({A},)), *layers])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **compiled)
    flops = Flops(**options)
    given = dict(x=data) if isinstance(data, tf.data.Dataset) else dict(x=data[0], y=data[1], batch_size=4)
    history = model.fit(**given, epochs=2, verbose=0, callbacks=[flops] if counted else [])
    kinds = [(kind.shapes, kind.calls, kind.metrics and kind.metrics["flops"]) for kind in flops.running.kinds]
    sums = [float(np.abs(weight.numpy()).sum()) for weight in model.variables]
    after = type(model.train_function).__module__
    last = flops.last.metrics(seconds=0.5) if flops.last and "device" in options else {{}}
    return {{"last": last, "untimed": sorted(flops.last.metrics()) if last else [],
             "flops": flops.flops, "logged": history.history.get("flops"), "kinds": kinds, "why": flops.withheld,
             "end": [history.history["loss"], sums], "after": after}}

print(json.dumps({{
    "plain": fit(), "bare": fit(counted=False), "several": fit(compiled={{"steps_per_execution": 2}}),
    "eager": fit(compiled={{"run_eagerly": True}}), "fixed": fit(data=pairs), "again": fit(data=pairs, check_every=1),
    "twice": fit(Twice), "own": fit(Own),
    "device": fit(device="A100 SXM4 80GB", dtype="tf32"),
}}))
"""


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run_program(PROGRAM, "tensorflow", tmp_path_factory.mktemp("keras"))


EPOCH = 2 * batch(4) + batch(2)


@pytest.mark.parametrize("name", ["plain", "several", "eager"])
def test_a_signature_is_counted_once_and_multiplied(fits: Any, name: str) -> None:
    assert fits[name]["logged"] == [EPOCH, 2 * EPOCH]
    assert fits[name]["flops"] == 2 * EPOCH
    kinds = [(f"float32 ({n}, {A}), int64 ({n},)", calls, batch(n)) for n, calls in ((4, 4), (2, 2))]
    assert [tuple(kind) for kind in fits[name]["kinds"]] == kinds


def test_the_training_is_as_without(fits: Any) -> None:
    assert fits["plain"]["end"] == fits["bare"]["end"]
    assert fits["plain"]["after"] == fits["bare"]["after"]


@pytest.mark.parametrize("name", ["fixed", "again"])
def test_batches_of_one_shape(fits: Any, name: str) -> None:
    assert (fits[name]["flops"], fits[name]["why"]) == (2 * 2 * batch(4), "")


def test_an_own_train_step_is_what_is_counted(fits: Any) -> None:
    assert fits["twice"]["flops"] == 2 * 2 * EPOCH


def test_the_last_step_has_the_utilisation_of_a_device(fits: Any) -> None:
    """156 TFLOP/s of TF32 in NVIDIA's A100 datasheet, for half a second; the last new signature is the batch of two rows."""
    peak, found = 156 * 10**12, fits["device"]["last"]
    assert found["mfu"] == found["hfu"] == batch(2) / (peak / 2)
    assert (found["flops"], found["peak"], found["seconds"]) == (batch(2), peak, 0.5)
    assert not {"mfu", "hfu", "peak", "seconds"} & set(fits["device"]["untimed"])
    assert fits["device"]["flops"] == fits["plain"]["flops"]


def test_an_own_train_function_has_no_total(fits: Any) -> None:
    assert fits["own"]["flops"] is None
    assert fits["own"]["why"].startswith("Own overrides make_train_function")
