"""``reconcile watch`` of scripts that call Keras' ``fit`` on TensorFlow. Each run is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from reconcile.products.steps.tensorflow import fit
from tests.products.steps.conftest import Watch

pytest.importorskip("tensorflow")
pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

ROWS, BATCH, WIDE, MIDDLE, NARROW = 20, 8, 64, 32, 10
LAST = ROWS % BATCH
FIRST_LAYER, SECOND_LAYER = 2 * WIDE * MIDDLE, 2 * MIDDLE * NARROW
STEP = 2 * FIRST_LAYER + 3 * SECOND_LAYER
"""A row's forward, the gradients of both weights, and that of the second layer's input: the first input needs none."""

MODEL = f"""
import random
import keras
import numpy

keras.utils.set_random_seed(0)
layers = keras.layers.Dense({MIDDLE}, "relu"), keras.layers.Dropout(0.5), keras.layers.Dense({NARROW})
x, y = numpy.random.normal(size=({ROWS}, {WIDE})), numpy.arange({ROWS}) % {NARROW}
"""
FIT = f"""{MODEL}
import tensorflow as tf

class Noise(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs), stddev=0.1)

model = keras.Sequential([keras.Input(({WIDE},)), Noise(), *layers])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.AdamW(), loss, metrics=["accuracy"])
model.fit(x, y, batch_size={BATCH}, epochs=2, verbose=0)
sums = [float(abs(weight.numpy()).sum()) for weight in model.variables + model.optimizer.variables]
print("the end", sums, random.random(), numpy.random.random(), flush=True)
"""
TWICE = f"""{MODEL}
import tensorflow as tf

class Twice(keras.Sequential):
    def train_step(self, data):
        images, labels, weights = data
        with tf.GradientTape() as tape:
            outputs = self(images, training=True) + self(2.0 * images, training=True)
            loss = self.compute_loss(y=labels, y_pred=outputs, sample_weight=weights)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {{"loss": loss}}

model = Twice([keras.Input(({WIDE},)), *layers])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size={BATCH}, sample_weight=numpy.ones({ROWS}), shuffle=False, verbose=0)
print("the end")
"""
NEVER = f"""{MODEL}
model = keras.Sequential([keras.Input(({WIDE},)), *layers])
model(x)
"""


def counted(report: dict[str, Any]) -> tuple[int, str]:
    """The total of the step and its note, where each counter is reconciled."""
    (trace,) = report["traces"]
    assert [statement["residual"] for statement in report["statements"]] == [0] * len(report["ledgers"])
    assert trace["framework"] == "tf"
    (note,) = [note for note in trace["notes"] if note.startswith("step ")]
    return int(trace["totals"]["matmul"]), note


def test_a_step_of_fit_and_the_rest_of_the_script(watch: Watch, capfd: Any) -> None:
    result, report = watch(FIT, before=("--steps", "3", "--continue"))
    assert result.exit_code == 0, result.output
    total, note = counted(report)
    assert total == LAST * STEP
    assert [ledger["counter"] for ledger in report["ledgers"]] == ["tf.profiler@function", "tf.profiler@runmeta"]
    assert "step 3 of fit: a call of its own train_step on one batch" in note
    assert "loss: SparseCategoricalCrossentropy; optimizer: keras.optimizers.AdamW" in note
    assert f"batch: x float32 ({LAST}, {WIDE}), y int64 ({LAST},)" in note
    (end,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("the end")]
    bare = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, check=True)
    assert end == bare.stdout.splitlines()[-1]  # no batch is lost, and no weight or random number is another


def test_an_overridden_step_that_calls_its_model_twice(watch: Watch, capfd: Any) -> None:
    result, report = watch(TWICE, before=("--counter", "tf.profiler@function"))
    assert result.exit_code == 0, result.output
    total, note = counted(report)
    assert total == 2 * BATCH * STEP
    assert [ledger["counter"] for ledger in report["ledgers"]] == ["tf.profiler@function"]
    assert "its own train_step, which Twice overrides" in note
    assert f"y int64 ({BATCH},), sample_weight float32 ({BATCH},)" in note
    assert "the end" not in capfd.readouterr().out


def test_a_script_that_never_fits_gets_one_sentence(watch: Watch) -> None:
    result, report = watch(NEVER)
    assert (result.exit_code, report) == (2, {})
    assert "train.py ended without a step to count: it called fit of Keras 0 times." in " ".join(result.output.split())


class Trainer:
    """As much of Keras' trainer as a watch needs: a train function takes ``steps_per_execution`` batches and gives their sum."""

    train_function: Any = None
    steps_per_execution = 2
    distribute_strategy = SimpleNamespace(num_replicas_in_sync=1)

    def make_train_function(self) -> None:
        def function(batches: Any) -> int:
            if taken := list(islice(batches, self.steps_per_execution)):
                return sum(taken)
            raise StopIteration

        self.train_function = self.train_function or function

    def fit(self, *batches: int) -> list[Any]:
        self.make_train_function()
        source, took = iter(batches), []
        with suppress(StopIteration):
            for _ in batches:
                took.append(self.train_function(source))
        return took


def watching(model: type[Trainer], *steps: int, call: int = 0) -> tuple[fit.FitRecorder, list[Any]]:
    """A watch of this trainer, and what it hands over; a program that is refused ends."""
    taken: list[Any] = []

    def done(found: Any) -> None:
        if found is None:
            raise SystemExit
        taken.append(found)

    return fit.FitRecorder(SimpleNamespace(TensorFlowTrainer=model), (steps[0], steps[-1]), call, done), taken


def test_the_asked_step_of_functions_of_two_steps() -> None:
    class Model(Trainer):
        pass

    watch, taken = watching(Model, 5)
    model = Model()
    assert model.fit(1, 2, 4) == [3, 4]
    assert (taken, watch.summary()["steps"]) == ([], 3)
    assert model.fit(8, 16, 32, 64) == [24, 96]  # no batch is lost
    ((found, batch),) = taken
    assert (found, batch.x, batch.rest, batch.number, batch.by) == (model, 16, (), 5, "fit")
    model.train_function(iter([1, 2]))
    assert len(taken) == 1


class Several(Trainer):
    distribute_strategy = SimpleNamespace(num_replicas_in_sync=4)


@pytest.mark.parametrize(
    ("kind", "steps", "call", "said"),
    [
        (Trainer, (1, 3), 0, "a range of steps is not for fit"),
        (Trainer, (1,), 2, "--calls is not for a model that Keras trains"),
        (Several, (1,), 0, "Model trains on 4 replicas at once"),
    ],
)
def test_what_cannot_be_counted_ends_the_program(kind: Any, steps: Any, call: int, said: str) -> None:
    watch, taken = watching(type("Base", (kind,), {}), *steps, call=call)
    with pytest.raises(SystemExit):
        type("Model", (watch.trainer,), {})().fit(1)
    assert watch.summary()["below"].startswith(said)
    assert not taken


def test_an_own_train_function_ends_the_program() -> None:
    watch, _ = watching(type("Base", (Trainer,), {}), 1)
    own = type("Own", (watch.trainer,), {"make_train_function": lambda model: None})
    with pytest.raises(SystemExit):
        own().fit(1)
    assert watch.summary()["below"].startswith("Own overrides make_train_function")
