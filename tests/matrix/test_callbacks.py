"""reconcile's callbacks in the training loops of transformers and of Lightning, by closed forms.

Of the language model, one sequence of T tokens: each of L layers of width H multiplies by 12 H^2 weights per token, and makes two
products of T x T x H; the head multiplies by H V. Backward takes each product twice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments.provision import ensure
from tests.matrix.callbacks_runs import HIDDEN, INPUTS, LAYERS, RANK, RESULTS, WIDTH, WORDS
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    python = ensure(environments.load(Path(__file__).with_name("callbacks.toml"))["callbacks"])
    program, folder = Path(__file__).with_name("callbacks_runs.py"), tmp_path_factory.mktemp("callbacks")
    return json.loads(output_of(program, python=python, folder=folder).splitlines()[-1])


def layers(tokens: int) -> int:
    """FLOPs of the layers of the language model, forward."""
    return LAYERS * 2 * (12 * WIDTH * WIDTH * tokens + 2 * tokens * tokens * WIDTH)


def forward(tokens: int) -> int:
    return layers(tokens) + 2 * WIDTH * WORDS * tokens


def perceptron(rows: int) -> int:
    """Forward and the gradients of its weights, and of the hidden values."""
    return 2 * rows * (2 * (INPUTS * HIDDEN + HIDDEN * RESULTS) + HIDDEN * RESULTS)


def test_trainer_counts_each_step(runs: Any) -> None:
    run = runs["plain"]
    assert run["flops"] == 3 * 3 * forward(8) + 3 * forward(6)
    assert run["kinds"] == [[1, 3 * forward(8)], [1, 3 * forward(6)], [2, 3 * forward(8)]]
    assert run["metrics"]["flops/forward"] == 3 * forward(8) + forward(6)


def test_trainer_logs_the_total_as_it_grows(runs: Any) -> None:
    run = runs["plain"]
    each = [3 * forward(tokens) for tokens in (8, 6, 8, 8)]
    assert run["logged"] == [sum(each[: i + 1]) for i in range(4)] + [sum(each)]
    assert run["history"] == sum(each)


def test_trainer_accumulates_with_checkpoints(runs: Any) -> None:
    """Nine micro-batches make two steps of four and one of one; the layers run once more for the backward pass."""
    run = runs["checkpoints"]
    assert run["flops"] == 8 * (3 * forward(8) + layers(8)) + 3 * forward(6) + layers(6)
    assert run["metrics"]["flops/recomputation"] == 8 * layers(8) + layers(6)
    assert sum(calls for calls, _ in run["kinds"]) == 9


def test_trainer_with_lora(runs: Any) -> None:
    """Weights that are frozen take no gradient: the adapters' A (H x r) and B (r x 3H) do."""
    run, adapter = runs["lora"], LAYERS * 2 * 8 * RANK * 4 * WIDTH
    metrics = run["metrics"]
    assert metrics["flops/forward"] == 4 * (forward(8) + adapter)
    assert metrics["flops/weight-gradient"] == 4 * adapter
    first = 2 * 8 * (3 * WIDTH * WIDTH + WIDTH * RANK)  # the embedding is frozen: nothing needs the first layer's input
    attention = LAYERS * 2 * 2 * 8 * 8 * WIDTH  # one more gradient each than the weights' product has
    assert metrics["flops/input-gradient"] == 4 * (forward(8) + adapter + attention - first)
    assert run["flops"] == sum(metrics[f"flops/{phase}"] for phase in ("forward", "input-gradient", "weight-gradient"))


@pytest.mark.parametrize("name", ["lightning", "accumulated"])
def test_lightning_counts_each_batch(runs: Any, name: str) -> None:
    run = runs[name]
    assert run["flops"] == 4 * perceptron(4) + perceptron(2)
    assert run["logged"] == run["flops"]
    assert sum(calls for calls, _ in run["kinds"]) == 5


def test_nothing_is_left_on_a_model(runs: Any) -> None:
    assert {name: run["hooks"] for name, run in runs.items()} == dict.fromkeys(runs, 0)
