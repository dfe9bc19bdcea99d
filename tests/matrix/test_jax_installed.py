"""The tool as pip leaves it in a fresh environment: with JAX alone, with no framework; what each runs and says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from reconcile.launch.environments.interpreters import clean_environ
from tests.programs import build_wheel, install

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]

ROWS, WIDTH = 5, 6
MODEL = f"""
import jax.numpy as jnp

def make():
    return lambda x: jnp.tanh(x @ jnp.ones(({WIDTH}, {WIDTH})))
"""
RUN = ("run", "--jax", "mine:make", "--input", f"{ROWS},{WIDTH}")
FLOPS = 2 * ROWS * WIDTH * WIDTH


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory)


def installed(wheel: Path, folder: Path, extra: str) -> Path:
    """The interpreter of a fresh environment with the wheel, what it needs and the extra's packages; a model is beside it."""
    (folder / "mine.py").write_text(MODEL)
    return install(f"{wheel}{extra}", folder / "fresh")


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JAX, and no other framework."""
    return installed(wheel, tmp_path_factory.mktemp("alone"), "[jax]")


@pytest.fixture(scope="module")
def nothing(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No framework at all."""
    return installed(wheel, tmp_path_factory.mktemp("nothing"), "")


def reconcile(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    folder = python.parents[2]
    environ = {**clean_environ(), "JAX_PLATFORMS": "cpu"}
    command = [str(python), "-m", "reconcile", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("counters", [(), ("xla@lowered",)])
def test_jax_alone_runs(alone: Path, counters: tuple[str, ...]) -> None:
    done = reconcile(alone, *RUN, *(word for name in counters for word in ("--counter", name)))
    assert done.returncode == 0, done.stderr
    data = json.loads((alone.parents[2] / "reports" / "mine.make.json").read_text())
    (trace,) = data["traces"]
    assert trace["totals"]["matmul"] == FLOPS
    ran = list(counters) or ["xla@lowered", "xla@compiled"]  # they run unasked
    assert [ledger["counter"] for ledger in data["ledgers"]] == ran
    # XLA counts tanh in a total of its own
    assert [ledger["total"] for ledger in data["ledgers"]] == [FLOPS] * len(ran)


@pytest.mark.parametrize(("option", "title", "extra"), [("--torch", "PyTorch", "torch"), ("--tf", "TensorFlow", "tf")])
def test_jax_alone_says_which_other_framework_is_missing(alone: Path, option: str, title: str, extra: str) -> None:
    said(reconcile(alone, *RUN, option, "mine:make"), title, extra)


def test_a_pair_runs_its_jax_side_and_misses_the_other(alone: Path) -> None:
    """Two LSTMs of 24 on 7 steps, and a dense layer onto 30 words, in Keras on JAX."""
    steps, units, words, batch = 7, 24, 30, 2
    sizes = {"steps": steps, "units": units, "vocabulary": words, "batch": batch}
    given = [word for name, size in sizes.items() for word in ("--set", f"{name}={size}")]
    done = reconcile(alone, "run", "--model", "lstm_lm", *given, "--counter", "xla@lowered", "--counter", "thop")
    assert done.returncode == 3
    assert "PyTorch is not installed in this environment" in " ".join(done.stdout.split())
    data = json.loads((alone.parents[2] / "reports" / "lstm_lm.json").read_text())
    macs = batch * steps * (2 * 4 * units * (units + units) + units * words)
    assert [t["totals"]["matmul"] for t in data["traces"] if t["framework"] == "jax"] == [2 * macs]
    assert [s["residual"] for s in data["statements"] if s["from"] == "xla@lowered"] == [0]


def test_no_framework_says_that_jax_is_missing(nothing: Path) -> None:
    said(reconcile(nothing, *RUN), "JAX", "jax")
    said(reconcile(nothing, *RUN, "--counter", "xla@lowered"), "JAX", "jax")


@pytest.mark.parametrize("environment", ["alone", "nothing"])
def test_lists_need_no_framework(environment: str, request: pytest.FixtureRequest) -> None:
    done = reconcile(request.getfixturevalue(environment), "explain", "counters")
    assert done.returncode == 0, done.stderr
    assert {"thop", "tf.profiler@frozen", "xla@lowered", "xla@compiled"} <= set(done.stdout.split())


def said(done: subprocess.CompletedProcess[str], title: str, extra: str) -> None:
    """One sentence, with the remedy."""
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    remedy = f"install it with: pip install 'flop-reconcile[{extra}]'"
    assert sentence.startswith(f"Error: {title} is not installed in this environment; {remedy}")
