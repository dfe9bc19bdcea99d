"""The zoo's llama as ranks share it, in training: closed forms, and no residual under any convention."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconcile.launch.request import run_request
from reconcile.products.ranks import ranked
from tests.products.ranks.test_worlds import by_rank, each_convention
from tests.zoo.transformers import llama

pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.heavy]

STEPS, DEPTH, WIDTH, HEADS, GROUPS, INNER, WORDS, RANKS = 7, 2, 24, 6, 2, 40, 52, 4
STEP = 3 * 2 * llama(STEPS, DEPTH, WIDTH, HEADS, GROUPS, INNER, WORDS)
"""The forward pass, and twice that for the gradients of inputs and weights: the table below the first block is trained, too."""
CUT = 3 * 2 * STEPS * WIDTH * (DEPTH * 3 * INNER + WORDS)
"""The dense layers of the blocks and the head."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(Path(__file__).with_name("zoo_llama.py"), tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["fsdp", "hsdp", "ddp"])
def test_each_rank_reads_its_batch(name: str) -> None:
    result = ranked.run_ranks(run_request(torch=f"zoo_llama:{name}", pass_="training"), RANKS, (), "zoo_llama:plain")
    assert by_rank(result) == dict.fromkeys(range(RANKS), STEP)
    found = each_convention(result)
    assert found["matmul"] == {"own-batch": -(RANKS - 1) * STEP}


def test_its_dense_layers_are_cut() -> None:
    result = ranked.run_ranks(run_request(torch="zoo_llama:tp", pass_="training"), RANKS, (), "zoo_llama:untied")
    assert by_rank(result) == dict.fromkeys(range(RANKS), STEP - CUT + CUT // RANKS)
    assert each_convention(result)["matmul"] == {"replicated": -(RANKS - 1) * (STEP - CUT)}
