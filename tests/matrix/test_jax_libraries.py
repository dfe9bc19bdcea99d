"""`reconcile run --jax` on one network as Equinox, Haiku and Keras write it, against its closed form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli

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


@pytest.mark.parametrize("name", list(LAYERS))
def test_a_library_s_network(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    (tmp_path / "nets.py").write_text(MODELS)
    shape = [] if name == "with_haiku" else ["--input", f"{ROWS},{WIDTH}"]
    words = ["run", "--jax", f"nets:{name}", *shape, "--convention", "all", "--out", "out"]
    words += ["--environments", str(ENVIRONMENTS), "--environment", "jax_libraries"]
    done = CliRunner().invoke(cli, words, prog_name="reconcile")
    assert done.exit_code == 0, done.output
    (trace,) = json.loads((tmp_path / "out" / f"nets.{name}.json").read_text())["traces"]
    assert trace["totals"]["all"] == sum(LAYERS[name].values())
    assert {layer: work for layer, work in found(done.output).items() if work} == LAYERS[name]


def test_layers_of_keras_are_rows_in_a_training_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop and its cell are one row, in the forward pass, in its gradient and in the optimizer's updates."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    (tmp_path / "nets.py").write_text(MODELS)
    words = ["run", "--jax", "nets:with_recurrent", "--input", f"{ROWS},{STEPS},{WIDTH}", "--pass", "training"]
    words += ["--out", "out", "--environments", str(ENVIRONMENTS), "--environment", "jax_libraries"]
    done = CliRunner().invoke(cli, words, prog_name="reconcile")
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "out" / "nets.with_recurrent-training.json").read_text())["layers"]
    layers = {re.sub(r"_\d+$", "", row["layer"]) for row in rows}
    assert (
        layers - {"", "(model)", "(loss)"}
        == {"both", "both.forward_lstm", "both.backward_lstm", "rnn", "head"} & layers
    )
    assert {"both.forward_lstm", "both.backward_lstm", "rnn", "head"} <= layers


def found(shown: str) -> dict[str, int]:
    """Layer -> work, from the table of the terminal."""
    rows = shown.partition("Layer by layer")[2].partition("\n\n")[0].splitlines()[3:]
    cells = [row.split() for row in rows if row.strip() and not row.startswith(" ")]  # counters are indented
    return {row[0]: int(row[1].replace(",", "")) for row in cells}
