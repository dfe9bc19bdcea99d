"""What trainers do before and between their steps leaves the ranks' numbers as they are: closed forms, and no residual."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconcile.launch.request import run_request
from reconcile.products.ranks import ranked
from tests.products.ranks import decoder as d
from tests.products.ranks.test_worlds import STEP, by_rank, causes

pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

TOKENS = d.BATCH * d.SEQ
TWO = 3 * 2 * (2 * TOKENS * 3 * d.DIM * d.HIDDEN) - 2 * 2 * TOKENS * d.DIM * d.HIDDEN
"""Two blocks of three products; the first input needs no gradient."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (Path(d.__file__), Path(__file__).with_name("ways.py")):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)


def run(name: str, world: int, against: str, pass_: str = "training") -> ranked.Ranked:
    return ranked.run_ranks(run_request(torch=f"ways:{name}", pass_=pass_), world, (), against)


def notes(result: ranked.Ranked) -> str:
    return " ".join(note for fold in result.folds for note in fold.trace.notes)


def test_a_mesh_of_gpus_runs_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    result = run("of_gpus", 2, "decoder:plain")
    assert (by_rank(result), causes(result)) == (dict.fromkeys(range(2), STEP), {"own-batch": -STEP})
    assert "mesh is of cuda devices, of which this machine has none" in notes(result)


def test_weights_get_values_after_they_are_sharded() -> None:
    result = run("filled_later", 2, "decoder:plain")
    assert (by_rank(result), causes(result)) == (dict.fromkeys(range(2), STEP), {"own-batch": -STEP})
    assert {fold.trace.device for fold in result.folds} == {"cpu"}
    assert "devices" not in notes(result)


def test_a_replicated_module_reads_its_own_batch() -> None:
    result = run("replicated", 2, "decoder:plain")
    assert (by_rank(result), causes(result)) == (dict.fromkeys(range(2), STEP), {"own-batch": -STEP})
    assert [each.kind for passed in result.traffic for each in passed].count("all_reduce") == len(result.folds)


def test_stages_pass_on_a_tensor_that_ranks_share() -> None:
    result = run("stages_of_parts", 4, "ways:two_step", "forward")
    first, last = (TWO - 3 * 2 * TOKENS * 3 * d.DIM * d.HIDDEN) // 2, 3 * 2 * TOKENS * 3 * d.DIM * d.HIDDEN // 2
    assert by_rank(result) == {0: first, 1: first, 2: last, 3: last}
    assert (result.totals["matmul"], causes(result)) == (TWO, {})


@pytest.mark.parametrize(
    ("name", "given"), [("chosen_apart", [48, 16]), ("chosen_in_place", [48, 16]), ("chosen_apart", [16, 8, 24, 16])]
)
def test_each_expert_gets_the_tokens_of_its_place(name: str, given: list[int]) -> None:
    """Ranks of equal batches: what each gets for its expert is as often there as there are ranks. The first and the last rank of
    four do equal work, and those between them do not."""
    result = run(name, len(given), "ways:chosen", "forward")
    each = 2 * d.DIM * d.HIDDEN
    assert by_rank(result) == {rank: len(given) * tokens * each for rank, tokens in enumerate(given)}
    assert causes(result) == {"own-batch": -(len(given) - 1) * TOKENS * each}
