"""Worlds of each kind: what each rank multiplies and what all of them do, by closed form, and every FLOP to one device named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.launch.request import run_request
from reconcile.ranks import ranked
from tests.ranks import decoder as d

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

TOKENS = d.BATCH * d.SEQ
WIDE = d.KV_HEADS * d.HEAD
LAYER = 2 * TOKENS * (2 * d.DIM * d.DIM + 2 * d.DIM * WIDE + 3 * d.DIM * d.HIDDEN) + 4 * TOKENS * d.SEQ * d.DIM
LOGITS = 2 * TOKENS * d.DIM * d.VOCAB
STEP = 3 * (d.LAYERS * LAYER + LOGITS)
"""The forward pass, and twice that for the gradients of inputs and weights: the table below the first layer is trained, too."""
AGAIN = d.LAYERS * (LAYER - 2 * TOKENS * d.HIDDEN * d.DIM)
"""Checkpoints stop where the last tensor is there that the gradients read: w2's product is not needed again."""
WEIGHTS = 2 * d.VOCAB * d.DIM + d.DIM + d.LAYERS * (2 * d.DIM + 2 * d.DIM * (d.DIM + WIDE) + 3 * d.DIM * d.HIDDEN)
ROUTED = 3 * 2 * TOKENS * (d.DIM * d.EXPERTS + d.TOP * 2 * d.DIM * d.HIDDEN) - 2 * TOKENS * d.DIM * d.EXPERTS
ROUTED -= 2 * TOKENS * d.TOP * d.DIM * d.HIDDEN
"""No gradient of the input: neither the router's nor that of the first layers of experts."""

Run = Callable[..., ranked.Ranked]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    shutil.copy(d.__file__, tmp_path / "decoder.py")
    monkeypatch.chdir(tmp_path)

    def ran(name: str, world: int, against: str, pass_: str = "forward", convention: str = "matmul") -> ranked.Ranked:
        request = run_request(torch=f"decoder:{name}", pass_=pass_, convention=convention)
        return ranked.run(request, world, (), f"decoder:{against}")

    return ran


def causes(result: ranked.Ranked) -> dict[str, int]:
    """By name; every rank's counter is explained, and so is the sum."""
    assert result.exit_code == 0
    assert {x.state for answer in result.answers for x in answer.ledgers} <= {State.EQUAL, State.EXPLAINED}
    statement = result.statement
    assert statement is not None
    assert statement.residual == 0
    assert statement.from_total == result.totals[result.convention.name]
    return {cause.value: amount for cause, amount in statement.by_cause().items()}


def by_rank(result: ranked.Ranked) -> dict[int, int]:
    return {rank: fold.trace.totals["matmul"] for fold in result.folds for rank in fold.ranks}


@pytest.mark.zoo
def test_tensor_parallel_ranks_share_products(run: Run) -> None:
    result = run("tp", 4, "plain", "training")
    assert by_rank(result) == dict.fromkeys(range(4), STEP // 4)
    assert result.world.ran == (0, 3)  # equal work is found without running the others
    assert (result.totals["matmul"], causes(result)) == (STEP, {})


@pytest.mark.zoo
def test_data_parallel_ranks_read_a_batch_each(run: Run) -> None:
    result = run("hsdp", 4, "plain", "training")
    assert by_rank(result) == dict.fromkeys(range(4), STEP)
    assert (result.totals["matmul"], causes(result)) == (4 * STEP, {"own-batch": -3 * STEP})


@pytest.mark.zoo
def test_stages_of_a_pipeline_add_up(run: Run) -> None:
    result = run("one_forward_one_backward", 2, "plain_step")
    half = 3 * d.LAYERS // 2 * LAYER
    assert by_rank(result) == {0: half, 1: half + 3 * LOGITS}
    assert (result.totals["matmul"], causes(result)) == (STEP, {})
    passes = "4 calls of a model, 4 backward passes, "  # one of each micro-batch, and none of what a stage runs before its step
    assert [fold.ranks for fold in result.folds if passes not in " ".join(fold.trace.notes)] == []
    balance = result.balance()
    assert balance is not None
    assert (balance[0].ranks, balance[1], balance[2]) == ((1,), Fraction(half + 3 * LOGITS, STEP // 2), "head")


KINDS = {
    "sequence": (4, "plain", STEP, {}),
    "tp_again": (4, "plain", STEP + AGAIN, {"recomputed": -AGAIN}),
    "tp_without_head": (4, "plain", STEP + 9 * LOGITS, {"replicated": -9 * LOGITS}),
    "fsdp": (4, "plain", 4 * STEP, {"own-batch": -3 * STEP}),
    "fsdp_of_one_batch": (4, "plain", STEP, {}),
    "ddp": (4, "plain", 4 * STEP, {"own-batch": -3 * STEP}),
    "experts_apart": (4, "experts", 4 * ROUTED, {"own-batch": -3 * ROUTED}),
    "vocabulary_shared": (4, "vocabulary", 2 * 2 * TOKENS * d.DIM * (d.VOCAB + 1), {}),
    "vocabulary_padded": (
        4, "vocabulary", 2 * 2 * TOKENS * d.DIM * (d.VOCAB + 4), {"padded-shard": -2 * 2 * TOKENS * d.DIM * 3}
    ),
}  # fmt: skip
STEPS = {
    "gpipe": (4, STEP, {}),
    "interleaved": (2, STEP, {}),
    "three_ways": (8, 2 * STEP, {"own-batch": -STEP}),
}


@pytest.mark.zoo
@pytest.mark.parametrize("name", KINDS)
def test_a_model_that_ranks_share(run: Run, name: str) -> None:
    world, against, total, named = KINDS[name]
    result = run(name, world, against, "training")
    assert (result.totals["matmul"], causes(result)) == (total, named)


@pytest.mark.zoo
@pytest.mark.parametrize("convention", ["all", "textbook"])
@pytest.mark.parametrize("name", ["tp", "tp_again", "sequence", "fsdp"])
def test_single_operations_have_causes_too(run: Run, name: str, convention: str) -> None:
    """Norms that each rank does, gradients that it adds where a tensor of the ranks ends, and sums that they cut."""
    assert "added-between-ranks" in causes(run(name, 4, "plain", "training", convention))


@pytest.mark.zoo
@pytest.mark.parametrize(("name", "world"), [("gpipe", 4), ("one_forward_one_backward", 2), ("interleaved", 2)])
def test_stages_add_and_scale_the_gradients_of_micro_batches(run: Run, name: str, world: int) -> None:
    """Of four micro-batches: three additions and a division for each weight. A norm's gradients are sums over the tokens: cut in
    four, they save the three additions. The loss divides three times more, and its gradient twice that."""
    norms, loss = d.DIM * (2 * d.LAYERS + 1), 1 + 2
    found = causes(run(name, world, "plain_step", "forward", "all"))
    assert found == {"micro-batches": -(4 * WEIGHTS - 3 * norms + 3 * loss)}


@pytest.mark.zoo
@pytest.mark.parametrize("convention", ["all", "textbook"])
def test_gradients_of_data_parallel_ranks_are_scaled_and_added(run: Run, convention: str) -> None:
    result = run("ddp", 2, "plain", "training", convention)
    assert causes(result)["added-between-ranks"] == -2 * (WEIGHTS + WEIGHTS // 2)


@pytest.mark.zoo
@pytest.mark.parametrize("convention", ["all", "textbook"])
def test_two_ranks_update_the_same_part_of_a_weight(run: Run, convention: str) -> None:
    result = run("hsdp", 4, "plain", "training", convention)
    assert causes(result)["replicated"] == -2 * WEIGHTS  # SGD multiplies and adds


@pytest.mark.zoo
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_ranks_share(run: Run, name: str) -> None:
    world, total, named = STEPS[name]
    result = run(name, world, "plain_step")
    assert (result.totals["matmul"], causes(result)) == (total, named)


@pytest.mark.zoo
def test_parts_of_what_does_not_divide(run: Run) -> None:
    result = run("vocabulary_shared", 4, "vocabulary")
    whole, last = 25, 22  # of 97 columns
    assert by_rank(result) == {rank: 2 * TOKENS * d.DIM * (last if rank == 3 else whole) for rank in range(4)}
