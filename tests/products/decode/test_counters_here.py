"""Figures of counters that do not run unasked elsewhere, of models of one's own: as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli

IN, MIDDLE, OUT = 8, 10, 6
UNITS, FEATURES, STEPS = 16, 24, 5
pytestmark = [pytest.mark.slow, pytest.mark.frameworks]

NETS = f"""
def two():
    import torch

    return torch.nn.Sequential(torch.nn.Linear({IN}, {MIDDLE}), torch.nn.Linear({MIDDLE}, {OUT}))


def gru():
    import keras

    start = keras.Input(batch_shape=(1, {STEPS}, {FEATURES}))
    return keras.Model(start, keras.layers.GRU({UNITS}, return_sequences=True)(start))
"""


def decoded(folder: Path, monkeypatch: pytest.MonkeyPatch, *args: object) -> str:
    """The first reading of a figure that is explained."""
    (folder / "nets.py").write_text(NETS)
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, ["decode", *map(str, args), "--quiet"], prog_name="reconcile")
    assert done.exit_code == 0, done.output
    return done.output.partition("explained: ")[2].strip()


def test_torchinfo_is_read_where_nothing_else_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchinfo multiplies parameters, biases included, by places: here once. Nobody named it."""
    total = (IN + 1) * MIDDLE + (MIDDLE + 1) * OUT
    found = decoded(tmp_path, monkeypatch, "--torch", "nets:two", "--input", f"1,{IN}", 2 * total)
    assert found in ("torchinfo × 2 (it counts MACs).", "ptflops@aten × 2 (it counts MACs).")


def test_a_frozen_graph_that_is_read_back_has_the_step_that_freezing_leaves_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's body has the input's product and one bias, whose shapes are known; the function that the loop came from, which
    no output needs any more, has a whole step: two products, a bias of each, and 8 additions and products per unit.  In the
    frozen function, which the other counters read, that is gone.
    """
    gates = 3 * UNITS
    body = 2 * gates * FEATURES + gates
    dead = 2 * gates * (FEATURES + UNITS) + 2 * gates + 8 * UNITS
    found = decoded(tmp_path, monkeypatch, "--tf", "nets:gru", "--input", f"1,{STEPS},{FEATURES}", body + dead)
    assert found == "tf.profiler@frozen_pb, as reported."
