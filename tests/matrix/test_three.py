"""One model in three frameworks: JAX in the environment of XLA's counters, beside TensorFlow and PyTorch; runs and sweeps."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from tests.matrix.reports import report_of

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(1800)]

COMMITTED = Path(__file__).parents[2] / "reports" / "keras.applications" / "backends" / "sweep.csv"
ENVIRONMENT = ("--environment", "xla")
ROWS, INPUTS, WIDTH, INNER, OUTPUTS, BLOCKS = 5, 6, 12, 24, 4, 3
PRODUCTS = 2 * ROWS * (INPUTS * WIDTH + BLOCKS * 2 * WIDTH * INNER + WIDTH * OUTPUTS)
NETS = f"""
def in_keras():
    import keras

    x = inputs = keras.Input(({INPUTS},))
    x = keras.layers.Dense({WIDTH}, name="embed")(x)
    for i in range({BLOCKS}):
        y = keras.layers.Dense({INNER}, activation="relu", name=f"blocks_{{i}}_fc1")(x)
        x = keras.layers.Add(name=f"blocks_{{i}}_add")([x, keras.layers.Dense({WIDTH}, name=f"blocks_{{i}}_fc2")(y)])
    return keras.Model(inputs, keras.layers.Dense({OUTPUTS}, name="head")(x))


def in_torch():
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = torch.nn.Linear({WIDTH}, {INNER})
            self.fc2 = torch.nn.Linear({INNER}, {WIDTH})

        def forward(self, x):
            return x + self.fc2(torch.relu(self.fc1(x)))

    net = torch.nn.Sequential()
    net.embed = torch.nn.Linear({INPUTS}, {WIDTH})
    net.blocks = torch.nn.Sequential(*(Block() for _ in range({BLOCKS})))
    net.head = torch.nn.Linear({WIDTH}, {OUTPUTS})
    return net


def in_nnx():
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.fc1 = nnx.Linear({WIDTH}, {INNER}, rngs=rngs)
            self.fc2 = nnx.Linear({INNER}, {WIDTH}, rngs=rngs)

        def __call__(self, x):
            return x + self.fc2(nnx.relu(self.fc1(x)))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Linear({INPUTS}, {WIDTH}, rngs=rngs)
            self.blocks = nnx.List([Block(rngs) for _ in range({BLOCKS})])
            self.head = nnx.Linear({WIDTH}, {OUTPUTS}, rngs=rngs)

        def __call__(self, x):
            x = self.embed(x)
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    return Net(nnx.Rngs(0))


def in_linen():
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x):
            return x + linen.Dense({WIDTH})(linen.relu(linen.Dense({INNER})(x)))

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Dense({WIDTH})(x)
            for _ in range({BLOCKS}):
                x = Block()(x)
            return linen.Dense({OUTPUTS})(x)

    return Net()
"""
PACKAGE = """
import keras


def _net(*layers):
    x = inputs = keras.Input((6, 6, 3))
    for layer in layers:
        x = layer(x)
    return keras.Model(inputs, x)


def dense(width=5):
    return _net(keras.layers.Flatten(), keras.layers.Dense(width))


def conv():
    return _net(keras.layers.Conv2D(4, 3, padding="same"), keras.layers.BatchNormalization(), keras.layers.ReLU())


def not_in_torch():
    if keras.backend.backend() == "torch":
        raise ValueError("this model is not for PyTorch")
    return _net(keras.layers.DepthwiseConv2D(3))
"""
WORK = {
    "tiny.dense@xla": 2 * 6 * 6 * 3 * 5,
    "tiny.conv@xla": 2 * 6 * 6 * 4 * 3 * 3 * 3,  # SAME: the taps over the padding are computed
    "tiny.not_in_torch@xla": 2 * 4 * 4 * 3 * 3 * 3,
}


def report(folder: Path, **nets: str) -> dict[str, Any]:
    (folder / "nets.py").write_text(NETS)
    models = [word for name, net in nets.items() for word in (f"--{name}", f"nets:{net}")]
    data = report_of(folder, *models, "--input", f"{ROWS},{INPUTS}", *ENVIRONMENT, "--format", "json", "-q")
    assert {trace["framework"]: trace["totals"]["matmul"] for trace in data["traces"]} == dict.fromkeys(nets, PRODUCTS)
    assert {statement["residual"] for statement in data["statements"]} == {0}
    return data


@pytest.mark.parametrize("net", ["in_nnx", "in_linen"])
def test_flax_beside_both_frameworks(net: str, tmp_path: Path) -> None:
    """Every layer with a product is one row of three, also where linen numbers its layers by itself."""
    data = report(tmp_path, tf="in_keras", torch="in_torch", jax=net)
    ends = [(s["from"], s["to"]) for s in data["statements"] if s["from"].startswith("trace@")]
    assert ends == [("trace@tf", "trace@torch"), ("trace@tf", "trace@jax"), ("trace@torch", "trace@jax")]
    whole = {row["torch"][0]: row for row in data["alignment"] if row["tf"] and row["torch"] and row["jax"]}
    inner = [f"blocks.{i}.fc{j}" for i in range(BLOCKS) for j in (1, 2)]
    assert set(whole) == {"embed", *inner, "head"}
    for name, row in whole.items():
        assert row["tf"] == [name.replace(".", "_")]
    assert {ledger["framework"] for ledger in data["ledgers"]} == {"tf", "torch", "jax"}  # each by its own counters


@pytest.mark.parametrize("other", [pytest.param("tf", marks=pytest.mark.heavy), "torch"])
def test_keras_on_jax_beside_one(other: str, tmp_path: Path) -> None:
    data = report(tmp_path, **{other: "in_keras"}, jax="in_keras")
    assert [row for row in data["alignment"] if row[other] != row["jax"] or not row["by"].startswith("name")] == []


def sweep(folder: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> list[dict[str, str]]:
    monkeypatch.chdir(folder)
    (folder / "tiny.py").write_text(PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    counters = ("--counter", "tf.profiler@function", "--counter", "flop_counter")
    words = ["sweep", what, "--frameworks", "tf,torch,jax", *ENVIRONMENT, *counters, "--format", "json", "-q"]
    done = CliRunner().invoke(cli, words, prog_name="reconcile")
    assert done.exit_code == 0, done.output
    with (folder / "sweep" / "sweep.csv").open(newline="") as text:
        return list(csv.DictReader(text))


def test_a_package_on_three_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sweep(tmp_path, monkeypatch, "tiny")
    traced = {(row["model"], row["framework"]): int(row["work"]) for row in rows if row["counter"] == "trace"}
    every = {(name, framework): work for name, work in WORK.items() for framework in ("tf", "torch", "jax")}
    every.pop(("tiny.not_in_torch@xla", "torch"))
    assert traced == every
    assert {row["residual"] for row in rows if row["counter"] not in ("", "trace")} == {"0"}
    page = (tmp_path / "sweep" / "README.md").read_text()
    assert "2 models ran in TensorFlow, PyTorch and JAX: 2 with the same work in each, 0 with another." in page
    assert "1 model ran in TensorFlow and JAX: 1 with the same work in each, 0 with another." in page


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["MobileNetV3Small"])
def test_the_committed_page_is_not_stale(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with COMMITTED.open(newline="") as text:
        held = [row for row in csv.DictReader(text) if row["model"] == f"keras.applications.{name}@xla"]
    assert sweep(tmp_path, monkeypatch, f"keras.applications:{name}") == held, "stale: make keras-backends"
