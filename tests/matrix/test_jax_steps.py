"""A user's own training step in JAX by closed forms, its phases, and XLA's number for it; functions of arrays by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.matrix.reports import found_in, python_of, run_here

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

STEPS = Path(__file__).with_name("jax_steps.py")
ROWS, WIDTH, HIDDEN, OUT, DEPTH = 5, 6, 8, 3, 4
FIRST, SECOND = ROWS * WIDTH * HIDDEN, ROWS * HIDDEN * OUT
PARAMETERS = WIDTH * HIDDEN + HIDDEN + HIDDEN * OUT + OUT
BLOCKS, HEAD = DEPTH * ROWS * WIDTH * HIDDEN, ROWS * WIDTH * OUT
MLP = {"forward": {"first": FIRST, "second": SECOND}, "backward": {"first": FIRST, "second": 2 * SECOND}}
"""The gradient of the first layer's input is not needed; every other product gives two."""
NNX = {
    "forward": {"blocks.up": BLOCKS, "blocks.down": BLOCKS, "head": HEAD},
    "backward": {"blocks.up": 2 * BLOCKS, "blocks.down": 2 * BLOCKS, "head": 2 * HEAD},
    "recomputation": {"blocks.up": BLOCKS},  # the result of ``down`` is needed by nothing in the backward pass
}
PRODUCTS = {
    "sgd jitted": MLP,
    "adamw": MLP,
    # three batches, and the model once more after the update
    "accumulated": {
        "forward": {"first": 4 * FIRST, "second": 4 * SECOND},
        "backward": {"first": 3 * FIRST, "second": 3 * 2 * SECOND},
    },
    "nnx": NNX,
    "closed over": NNX,
}
UPDATES = {
    "sgd jitted": 2 * PARAMETERS,  # w + (-lr g)
    # two averages of 3 each, g^2, two corrections of bias, their quotient with two sums and a root, decay of 2, rate, sum; and
    # two powers and two differences for the corrections
    "adamw": (2 * 3 + 1 + 2 + 4 + 2 + 1 + 1) * PARAMETERS + 4,
    "accumulated": (3 + 2) * PARAMETERS,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return found_in(python_of("xla"), STEPS, tmp_path_factory.mktemp("steps"))


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_products_of_a_step_by_phase_and_layer(found: dict[str, Any], name: str) -> None:
    products = {
        phase: {layer: macs for layer, (macs, _) in layers.items() if macs}
        for phase, layers in found[name]["phases"].items()
    }
    assert {phase: layers for phase, layers in products.items() if layers} == PRODUCTS[name]
    assert found[name]["pass"] == "training"


@pytest.mark.parametrize("name", UPDATES)
def test_what_follows_the_gradients_is_the_optimizer(found: dict[str, Any], name: str) -> None:
    assert {layer: others for layer, (_, others) in found[name]["phases"]["optimizer"].items()} == {
        "(model)": UPDATES[name]
    }


def test_xla_s_own_number_of_a_step_is_explained(found: dict[str, Any]) -> None:
    for name in ("sgd jitted", "nnx"):
        assert found[name]["totals"] == found[name]["own"]
    left = {name: step["residuals"] for name, step in found.items() if any(step["residuals"])}
    assert left == {}
    assert min(len(step["residuals"]) for step in found.values()) > 0


def run(folder: Path, *words: str) -> tuple[Result, dict[str, Any]]:
    (folder / "mine.py").write_text(STEPS.read_text())
    return run_here(folder, *words, "--environment", "xla")


def test_a_step_and_its_arguments_by_name(tmp_path: Path) -> None:
    done, report = run(tmp_path, "--jax", "mine:sgd_step", "--args", "mine:of_sgd", "--counter", "xla@lowered")
    assert done.exit_code == 0, done.output
    assert report["traces"][0]["totals"]["matmul"] == 2 * (2 * FIRST + 3 * SECOND)
    assert [statement["residual"] for statement in report["statements"]] == [0]
    assert "per training step of mine:sgd_step" in " ".join(done.output.split())


def test_a_function_of_arrays_takes_shapes(tmp_path: Path) -> None:
    done, report = run(tmp_path, "--jax", "mine:look_up", "--input", "1,8:int32")
    assert done.exit_code == 0, done.output
    assert report["traces"][0]["totals"]["matmul"] == 2 * 8 * WIDTH * OUT


def test_arguments_that_are_missing_are_said(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "--jax", "mine:look_up")
    assert done.exit_code == 2
    assert "mine:look_up takes arguments (ids), and none are given" in " ".join(done.output.split())


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_xla_counts_the_step_of_a_model(optimizer: str, tmp_path: Path) -> None:
    words = ("--pass", "training", "--optimizer", optimizer, "--counter", "xla@lowered", "--counter", "xla@compiled")
    (tmp_path / "one.py").write_text(
        "import mine\n\n\ndef make():\n    return mine.Net(mine.nnx.Rngs(0)), mine.batch()[:1]\n"
    )
    done, report = run(tmp_path, "--jax", "one:make", "--convention", "all", *words)
    assert done.exit_code == 0, done.output
    assert [statement["residual"] for statement in report["statements"]] == [0, 0]
