"""Real upgrades: a baseline taken in one real environment, checked in another. Needs uv and old interpreters."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from tests.drift.takes import DENSE, GRU

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]


def layers(parts: Iterable[str]) -> set[str]:
    """Layers whose entries moved: ``  gru  MatMul: no entry -> 1`` (deeper lines are causes, ``  from`` the totals)."""
    lines = [line for part in parts for line in part.splitlines()]
    return {line.split()[0] for line in lines if line[:2] == "  " != line[1:3]} - {"from"}


def check(*args: str) -> Result:
    return CliRunner().invoke(cli, ["check", "--model", "gru_demo", *args])


def test_thop_learns_of_recurrent_layers(tmp_path: Path) -> None:
    here = ("--baselines", str(tmp_path))
    old = "torch-1.10.1-thop-2001"
    assert check("--environment", old, *here, "--update").exit_code == 0
    same = check("--environment", old, *here)
    assert (same.exit_code, same.stdout.count("\n")) == (0, 1)
    moved = check("--environment", "torch-1.10.1-thop-2005", "--against", str(tmp_path / "gru_demo" / f"{old}.json"))
    assert moved.exit_code == 1
    assert "thop moved, at dense, gru\n" in moved.stdout  # and not at conv
    for words in (
        "thop 0.0.31.post2001170342 -> 0.0.31.post2005241907",
        "dense  torch.nn.modules.linear.Linear: 4,767,744 -> 2,383,872",
        f"gru  torch.nn.modules.rnn.GRU: no entry -> {GRU:,}",
        f"formula-differs: -{2 * DENSE:,} -> none",
        "op-not-counted: +232,427,520 -> none",
        "outside-convention: none -> -242,112",
        "from 22,938,560 to 250,840,448 FLOPs",
        "unexplained 0",
    ):
        assert words in moved.stdout


@pytest.mark.heavy
def test_torch_1_10_to_the_current_one_moves_nothing(tmp_path: Path) -> None:
    assert check("--environment", "torch-1.10.1", "--baselines", str(tmp_path), "--update").exit_code == 0
    now = check("--against", str(tmp_path / "gru_demo" / "torch-1.10.1.json"))
    assert (now.exit_code, now.stdout.count("\n")) == (0, 1)
    assert "torch 1.10.1 -> " in now.stdout


STEPS, GATES, WIDE, UNITS = 97, 3 * 96, 4064, 96
INPUT_STEP, STATE_STEP = 2 * GATES * WIDE, 2 * GATES * UNITS
"""FLOPs of one step's two products, and the elementwise work of the step that Keras 3 runs once to learn its shapes."""
PROBE = INPUT_STEP + STATE_STEP + GATES + 7 * UNITS + 3 * UNITS + UNITS  # products; BiasAdd; AddV2 x 5; Mul x 3; Sub


def test_keras_2_to_keras_3_moves_the_gru_alone(tmp_path: Path) -> None:
    """tensorflow-cpu 2.15.1 hides the GRU in a call; 2.21 has a While, which @frozen lowers, and a dead step beside it."""
    old = ("--with", "tensorflow-cpu==2.15.1", "--python", "3.11")
    assert check(*old, "--baselines", str(tmp_path), "--update").exit_code == 0
    (baseline,) = (tmp_path / "gru_demo").iterdir()
    same = check(*old, "--baselines", str(tmp_path))
    assert (same.exit_code, same.stdout.count("\n")) == (0, 1)
    moved = check("--against", str(baseline))
    assert moved.exit_code == 1
    assert "tf.profiler@function, tf.profiler@frozen, tf.profiler@runmeta moved, at gru\n" in moved.stdout
    parts = {part.partition(":")[0]: part for part in moved.stdout.split("\n\n")[1:]}
    assert layers(parts.values()) == {"gru"}
    assert f"dead-op: none -> -{PROBE:,}" in parts["tf.profiler@function"]
    recurrent = STEPS * (INPUT_STEP + STATE_STEP)
    assert f"shape-unknown: +{recurrent:,} -> +{STEPS * STATE_STEP:,}" in parts["tf.profiler@frozen"]
    assert f"loop-counted-once: none -> +{(STEPS - 1) * INPUT_STEP:,}" in parts["tf.profiler@frozen"]
    # The loop's own bookkeeping: of its counters (97 + 1 tests of the bound).
    assert f"integer-op +{STEPS + 1}, unexplained 0" in parts["tf.profiler@runmeta"]
    assert moved.stdout.count("unexplained 0") == 3
