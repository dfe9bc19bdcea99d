"""``reconcile watch`` of scripts of Keras on PyTorch, whose optimizers are none of torch.optim. Each is a process of its own."""

from __future__ import annotations

import pytest

from tests.products.steps.conftest import Watch

pytest.importorskip("torch")
pytest.importorskip("keras")
pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

ROWS, BATCH, WIDE, MIDDLE, NARROW = 20, 8, 16, 32, 4
STEP = 2 * 2 * WIDE * MIDDLE + 3 * 2 * MIDDLE * NARROW
"""A row's forward, the gradients of both weights, and that of the second layer's input."""

MODEL = f"""
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy
import torch

layers = keras.layers.Dense({MIDDLE}, "relu"), keras.layers.Dense({NARROW})
model = keras.Sequential([keras.Input(({WIDE},)), *layers])
x, y = numpy.ones(({ROWS}, {WIDE}), "float32"), numpy.ones(({ROWS}, {NARROW}), "float32")
"""
FIT = f"""{MODEL}
model.compile("adam", "mse")
model.fit(x, y, batch_size={BATCH}, shuffle=False, verbose=0)
"""
LOOP = f"""{MODEL}
optimizer, weights = keras.optimizers.SGD(0.1), model.trainable_weights
for rows in (8, 6):
    model.zero_grad()
    keras.losses.mean_squared_error(y[:rows], model(x[:rows], training=True)).mean().backward()
    with torch.no_grad():
        optimizer.apply([weight.value.grad for weight in weights], weights)
"""
CASES = {
    "fit": (FIT, "1", BATCH),
    "fit, to its end": (FIT, "2-3", ROWS - BATCH),
    "a loop": (LOOP, "2", 6),
}


@pytest.mark.parametrize(("script", "steps", "rows"), CASES.values(), ids=CASES)
def test_a_step_of_keras_on_pytorch(watch: Watch, script: str, steps: str, rows: int) -> None:
    result, report = watch(script, before=("--steps", steps))
    assert result.exit_code == 0, result.output
    (trace,), (ledger,) = report["traces"], report["ledgers"]
    assert (trace["totals"]["matmul"], ledger["total"]) == (rows * STEP, rows * STEP)
    calls = len(steps.split("-"))
    assert [note for note in trace["notes"] if f"{calls} call" in note and f"{calls} backward pass" in note] != []
