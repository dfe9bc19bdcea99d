"""A training step with any optimizer of Keras: by its name, or like one at hand."""

from __future__ import annotations

from typing import Any

import keras
import pytest

import reconcile
from reconcile.adapters.tensorflow import FRAMEWORK

INPUTS, OUTPUTS, BATCH = 6, 8, 2
STEP = 2 * BATCH * 2 * INPUTS * OUTPUTS  # the input itself needs no gradient
WEIGHTS = INPUTS * OUTPUTS


def step(optimizer: Any, convention: str = "matmul") -> Any:
    layers = [keras.layers.Input((INPUTS,), batch_size=BATCH), keras.layers.Dense(OUTPUTS, use_bias=False)]
    (trace,) = reconcile.run(
        tf=keras.Sequential(layers), inputs=f"{BATCH},{INPUTS}", pass_="training", optimizer=optimizer,
        counters=("tf.profiler@function",), convention=convention,
    ).result.traces  # fmt: skip
    return trace


@pytest.mark.parametrize("name", ["adamw", "lion", "ftrl", "muon", "schedulefreeadamw"])
def test_its_work_is_known_and_its_products_counted(name: str) -> None:
    trace = step(name)
    short, long = sorted((INPUTS, OUTPUTS))
    products = 5 * 2 * (2 * short * short * long + short**3) if name == "muon" else 0
    assert (trace.complete, trace.totals["matmul"]) == (True, STEP + products), trace.reason
    assert f"keras.optimizers.{name}" in trace.notes[0].lower()


def test_the_names_are_those_of_keras() -> None:
    base = keras.optimizers.Optimizer
    wrappers = ("optimizer", "lossscaleoptimizer", "multioptimizer")
    known = {
        n.lower() for n, kind in vars(keras.optimizers).items() if isinstance(kind, type) and issubclass(kind, base)
    }
    assert known - set(wrappers) == set(FRAMEWORK.optimizers)


def test_one_at_hand_keeps_its_settings() -> None:
    """Momentum: a product and a sum of each weight more than plain SGD."""
    held = keras.optimizers.SGD(momentum=0.9)
    more = step(held, "all").totals["all"] - step("sgd", "all").totals["all"]
    assert more == 2 * WEIGHTS or more == WEIGHTS, more
    assert not held.built
