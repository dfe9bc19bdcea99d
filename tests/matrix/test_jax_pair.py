"""A pair with a PyTorch and a JAX side, in the environment of XLA's counters: over the running interpreter's packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(1800)]

ROWS, WIDTH, UNITS = 5, 3, 4
PAIR = f"""
from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair(name="both", layers=(Layer("dense", torch="dense", jax="dense"),))


def inputs(p):
    return [Input("x", ({ROWS}, {WIDTH}))]


def build_torch(p):
    import torch

    net = torch.nn.Sequential()
    net.dense = torch.nn.Linear({WIDTH}, {UNITS})
    return net


def build_jax(p):
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self):
            self.dense = nnx.Linear({WIDTH}, {UNITS}, rngs=nnx.Rngs(0))

        def __call__(self, x):
            return self.dense(x)

    return Net()
"""


def test_the_work_is_the_same_and_both_counters_reconcile(tmp_path: Path) -> None:
    file = tmp_path / "both.py"
    file.write_text(PAIR)
    words = ["--counter", "xla@lowered", "--counter", "thop", "--environment", "xla", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(cli, ["run", "--model", str(file), *words, "-q"], prog_name="reconcile")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "out" / "both.json").read_text())
    product = 2 * ROWS * WIDTH * UNITS
    assert {trace["framework"]: trace["totals"]["matmul"] for trace in report["traces"]} == {
        "torch": product,
        "jax": product,
    }
    assert {x["counter"]: x["total"] for x in report["ledgers"]} == {
        "thop": product // 2,
        "xla@lowered": product + ROWS * UNITS,  # and the bias
    }
    assert {statement["residual"] for statement in report["statements"]} == {0}
