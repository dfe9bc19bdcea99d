"""`reconcile run --jax` on one network as Equinox, Haiku and Keras write it, against its closed form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.reports import report_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ENVIRONMENTS = Path(__file__).with_name("jax_libraries.toml")
ROWS, WIDTH, HIDDEN, OUT, STEPS = 5, 6, 8, 3, 4
MODELS = f"""
import jax


def with_equinox():
    import equinox
    return jax.vmap(equinox.nn.MLP({WIDTH}, {OUT}, {HIDDEN}, 1, key=jax.random.key(0)))


def with_haiku():
    import haiku

    made = haiku.without_apply_rng(haiku.transform(lambda x: haiku.nets.MLP([{HIDDEN}, {OUT}])(x)))
    x = jax.ShapeDtypeStruct(({ROWS}, {WIDTH}), "float32")
    return made.apply, (jax.eval_shape(made.init, jax.random.key(0), x), x)


def with_keras():
    import keras

    return keras.Sequential([
        keras.layers.Input(({WIDTH},)),
        keras.layers.Dense({HIDDEN}, activation="relu", name="first"),
        keras.layers.Dense({OUT}, name="second"),
    ])


def with_recurrent():
    import keras

    return keras.Sequential([
        keras.layers.Input(({STEPS}, {WIDTH}), batch_size={ROWS}),
        keras.layers.Bidirectional(keras.layers.LSTM({HIDDEN}, return_sequences=True), name="both"),
        keras.layers.RNN(keras.layers.SimpleRNNCell({OUT}), name="rnn"),
        keras.layers.Dense({OUT}, name="head"),
    ])
"""
FIRST = ROWS * HIDDEN * (2 * WIDTH + 1)
SECOND = ROWS * OUT * (2 * HIDDEN + 1)
ACTIVATION = ROWS * HIDDEN
LAYERS = {
    # Equinox's own scopes are the classes, so both products are in one layer.
    "with_equinox": {"eqx.nn.MLP.eqx.nn.Linear": FIRST + SECOND, "eqx.nn.MLP": ACTIVATION},
    "with_haiku": {"mlp.linear_0": FIRST, "mlp": ACTIVATION, "mlp.linear_1": SECOND},
    "with_keras": {"first": FIRST + ACTIVATION, "second": SECOND},
}


def report(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    (folder / "nets.py").write_text(MODELS)
    return report_of(folder, *words, "--environments", str(ENVIRONMENTS), "--environment", "jax_libraries")


@pytest.mark.parametrize("name", list(LAYERS))
def test_a_library_s_network(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = [] if name == "with_haiku" else ["--input", f"{ROWS},{WIDTH}"]
    (trace,) = report(tmp_path, monkeypatch, "--jax", f"nets:{name}", *shape, "--convention", "all")["traces"]
    found: dict[str, int] = {}
    for row in trace["rows"]:
        work = 2 * row["mac"] + sum(row[kind] for kind in ("add", "mul", "div", "cmp", "special"))
        found[row["layer"]] = found.get(row["layer"], 0) + work
    assert {layer: work for layer, work in found.items() if work} == LAYERS[name]
    assert trace["totals"]["all"] == sum(LAYERS[name].values())


def test_layers_of_keras_are_rows_in_a_training_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop and its cell are one row, in the forward pass, in its gradient and in the optimizer's updates."""
    words = ("--jax", "nets:with_recurrent", "--input", f"{ROWS},{STEPS},{WIDTH}", "--pass", "training")
    rows = report(tmp_path, monkeypatch, *words)["layers"]
    layers = {re.sub(r"_\d+$", "", row["layer"]) for row in rows}
    inner = {"both.forward_lstm", "both.backward_lstm", "rnn", "head"}
    assert inner <= layers <= {*inner, "both", "", "(model)", "(loss)"}
