"""reconcile.keras.Flops in ``fit``, in a process whose Keras runs on PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("keras")

from tests.products.steps.keras_programs import A, B, C, batch, run_program

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

PROGRAM = f"""
import json
import keras, numpy as np
from reconcile.core.errors import UsageError
from reconcile.keras import Flops

def fit(optimizer, **options):
    model = keras.Sequential([keras.layers.Dense({B}, activation="relu"), keras.layers.Dense({C})])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    flops = Flops(**options)
    x, y = np.ones((10, {A}), "float32"), np.zeros(10, int)
    history = model.fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[flops], validation_data=(x, y))
    kinds = [(kind.calls, kind.metrics["flops"]) for kind in flops.running.kinds]
    return {{"flops": flops.flops, "logged": history.history["flops"], "kinds": kinds}}

found = {{"plain": fit("adam")}}
found["accumulated"] = fit(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), convention="all")
keras.backend.backend = lambda: "jax"
try:
    fit("adam")
except UsageError as error:
    found["refused"] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run_program(PROGRAM, "torch", tmp_path_factory.mktemp("keras"))


def test_fit_is_counted_and_its_validation_is_not(fits: Any) -> None:
    epoch = 2 * batch(4) + batch(2)
    assert fits["plain"]["flops"] == 2 * epoch
    assert fits["plain"]["logged"] == [epoch, 2 * epoch]
    assert sum(calls for calls, _ in fits["plain"]["kinds"]) == 6


def test_a_batch_that_only_accumulates_is_a_kind(fits: Any) -> None:
    """Batches of 4, 4, 2, 4, 4, 2: the second, fourth and sixth step the optimizer. Before the first no weight has a gradient."""
    kinds = [tuple(kind) for kind in fits["accumulated"]["kinds"]]
    assert sorted(calls for calls, _ in kinds) == [1, 1, 1, 1, 2]
    assert len({flops for _, flops in kinds}) == 4  # a step is more than none, and 4 rows more than 2


def test_another_backend_is_refused_in_a_sentence(fits: Any) -> None:
    assert fits["refused"].startswith(
        "reconcile.keras.Flops counts the steps of Keras on tensorflow or Keras on torch, and this is Keras on jax"
    )
