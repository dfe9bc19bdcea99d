"""Worlds of each kind: what each rank multiplies and what all of them do, by closed form, and every FLOP to one device named."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from reconcile.core import conventions
from reconcile.core.causes import State
from reconcile.core.results import Statement
from reconcile.launch.request import run_request
from reconcile.products.ranks import ranked
from reconcile.products.ranks.sums import Part, Sum
from tests.products.ranks import decoder as d
from tests.products.ranks import experts as e

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
ROUTED = 3 * 2 * TOKENS * (d.DIM * e.EXPERTS + e.TOP * 2 * d.DIM * d.HIDDEN) - 2 * TOKENS * d.DIM * e.EXPERTS
ROUTED -= 2 * TOKENS * e.TOP * d.DIM * d.HIDDEN
"""No gradient of the input: neither the router's nor that of the first layers of experts."""

Run = Callable[..., ranked.Ranked]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for module in (d, e):
        shutil.copy(str(module.__file__), tmp_path)
    monkeypatch.chdir(tmp_path)

    def ran(name: str, world: int, against: str, pass_: str = "forward", convention: str = "matmul") -> ranked.Ranked:
        module = "experts" if name.startswith("experts") else "decoder"
        request = run_request(torch=f"{module}:{name}", pass_=pass_, convention=convention)
        return ranked.run_ranks(request, world, (), f"{module}:{against}")

    return ran


def causes(result: ranked.Ranked) -> dict[str, int]:
    assert result.statement is not None
    assert result.statement.from_total == result.totals[result.convention.name]
    return closed(result.statement)


def closed(statement: Statement) -> dict[str, int]:
    assert statement.state in {State.EQUAL, State.EXPLAINED}, statement.reason
    assert statement.residual == 0
    return {cause.value: amount for cause, amount in statement.by_cause().items()}


def each_convention(result: ranked.Ranked) -> dict[str, dict[str, int]]:
    """The causes of one run under each convention."""
    assert result.one is not None
    parts, one = [Part(len(fold.ranks), fold.trace) for fold in result.folds], result.one.traces[0]
    return {
        name: closed(Sum(parts, one, result.world.batches, result.world.share, conventions.NAMED[name]).statement())
        for name in ("matmul", "all", "textbook")
    }


def by_rank(result: ranked.Ranked) -> dict[int, int]:
    return {rank: fold.trace.totals["matmul"] for fold in result.folds for rank in fold.ranks}


@pytest.mark.slow
def test_tensor_parallel_ranks_share_products(run: Run) -> None:
    result = run("tp", 4, "plain", "training")
    assert by_rank(result) == dict.fromkeys(range(4), STEP // 4)
    assert result.world.ran == (0, 3)  # equal work is found without running the others
    assert (result.totals["matmul"], causes(result)) == (STEP, {})


@pytest.mark.slow
def test_data_parallel_ranks_read_a_batch_each(run: Run) -> None:
    result = run("hsdp", 4, "plain", "training")
    assert by_rank(result) == dict.fromkeys(range(4), STEP)
    assert (result.totals["matmul"], causes(result)) == (4 * STEP, {"own-batch": -3 * STEP})


@pytest.mark.slow
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
    "vocabulary_shared": (4, "vocabulary", 2 * 2 * TOKENS * d.DIM * (d.VOCAB + 1), {}),
    "vocabulary_padded": (
        4, "vocabulary", 2 * 2 * TOKENS * d.DIM * (d.VOCAB + 4), {"padded-shard": -2 * 2 * TOKENS * d.DIM * 3}
    ),
}  # fmt: skip
NORMS = d.DIM * (2 * d.LAYERS + 1)
REST = WEIGHTS - NORMS - d.VOCAB * d.DIM
"""Weights beside those of norms and of the table."""
STEPS = {"gpipe": 4, "interleaved": 2, "gpipe_again": 4, "interleaved_again": 2, "one_forward_one_backward_again": 2}
STAGES = {
    "tensor_in_stages": (4, 1),
    "tensor_in_stages_again": (4, 1),
    "three_ways": (8, 2),
    "three_ways_again": (8, 2),
}
IN_ZOO = ("gpipe", "gpipe_again", "interleaved", "three_ways", "tensor_in_stages_again")


def marked(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow if name in IN_ZOO else pytest.mark.heavy) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_model_that_ranks_share(run: Run, name: str) -> None:
    world, against, total, named = KINDS[name]
    result = run(name, world, against, "training")
    assert (result.totals["matmul"], causes(result)) == (total, named)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tp", "tp_again", "sequence", "fsdp"])
def test_single_operations_have_causes_too(run: Run, name: str) -> None:
    """Norms that each rank does, gradients that it adds where a tensor of the ranks ends, and sums that they cut."""
    found = each_convention(run(name, 4, "plain", "training"))
    assert [name for name in ("all", "textbook") if "added-between-ranks" not in found[name]] == []


@pytest.mark.slow
def test_gradients_of_data_parallel_ranks_are_scaled_and_added(run: Run) -> None:
    found = each_convention(run("ddp", 2, "plain", "training"))
    for convention in ("all", "textbook"):
        assert found[convention]["added-between-ranks"] == -2 * (WEIGHTS + WEIGHTS // 2)


def of_micro_batches(norms: int = NORMS) -> dict[str, int]:
    """Of four micro-batches: three additions and a division for each weight. A norm's gradients are sums over the tokens: cut in
    four, they save the three additions. The loss divides three times more, and its gradient twice that. Of a product's sums the
    textbook saves the three additions as well."""
    each = 4 * WEIGHTS - 3 * norms + 3 * (1 + 2)
    return {"all": -each, "textbook": 3 * REST - each}


@pytest.mark.parametrize("name", marked(STEPS))
def test_a_step_that_stages_share(run: Run, name: str) -> None:
    result = run(name, STEPS[name], "plain_step")
    found, again = each_convention(result), AGAIN if name.endswith("_again") else 0
    assert result.totals["matmul"] == STEP + again
    assert found["matmul"] == ({"recomputed": -again} if again else {})
    for convention, amount in of_micro_batches().items():
        assert found[convention].pop("micro-batches") == amount
        assert set(found[convention]) == ({"recomputed"} if again else set())


@pytest.mark.parametrize("name", marked(STAGES))
def test_a_stage_that_several_ranks_share(run: Run, name: str) -> None:
    """Two ranks share the tensors of each stage, and one or two such pairs read a batch each."""
    world, batches = STAGES[name]
    result, again = run(name, world, "plain_step"), name.endswith("_again")
    found = each_convention(result)
    assert result.totals["matmul"] == batches * (STEP + AGAIN * again)
    assert found["matmul"].pop("recomputed", 0) == -batches * AGAIN * again
    assert found["matmul"] == ({"own-batch": -STEP} if batches > 1 else {})
    assert result.one is not None
    one, table = result.one.traces[0], d.VOCAB * d.DIM
    both = re.compile(r"layers\.\d(\.n\d)?|norm|embed|\(loss\)")  # what is no product of a part
    ranks, collectives = 2 * batches, batches * TOKENS * d.DIM * (7 * d.LAYERS + 2 + d.LAYERS * again)
    # Forward, two for each block and one for the table; backward, one for each product that has a part of its outputs.
    sums = batches * TOKENS * d.DIM * (7 * d.LAYERS + 1)
    """The products of parts of their inputs, forward, and of their outputs, backward."""
    kept = table + 2 * NORMS + REST
    for convention in ("all", "textbook"):
        causes_, saves = found[convention], convention == "textbook"
        flops = conventions.NAMED[convention].flops
        whole = sum(flops(row.work) for row in one.rows if both.fullmatch(row.layer))
        assert causes_.pop("own-batch", 0) == -(batches - 1) * one.totals[convention]
        assert causes_.pop("replicated") == -batches * whole
        # Each rank adds its gradients, and scales those that it keeps; one of the whole table, where no other keeps a part of it.
        scaled = kept if batches > 1 else kept + table
        added = 3 * ranks * table + 3 * batches * REST
        assert causes_.pop("micro-batches") == -(added + scaled + 3 * (1 + 2) * ranks) + saves * 3 * batches * REST
        reduced = 2 * kept if batches > 1 else 0  # the mean of two: an addition, and a division
        assert causes_.pop("added-between-ranks") == -(collectives + reduced) + saves * sums
        assert set(causes_) == ({"recomputed"} if again else set())


@pytest.mark.parametrize(
    ("name", "against"),
    [
        pytest.param("experts_apart", "experts", marks=pytest.mark.slow),
        pytest.param("experts_apart_again", "experts", marks=pytest.mark.heavy),
        pytest.param("experts_apart_again", "experts_again", marks=pytest.mark.heavy),
    ],
)
def test_experts_of_several_ranks(run: Run, name: str, against: str) -> None:
    """Each rank has a batch, and two of eight experts, which the tokens of all ranks reach; each updates its own router."""
    result = run(name, 4, against, "training")
    found, again = each_convention(result), 0
    if name.endswith(
        "_again"
    ):  # the weighting at the end reads the experts' outputs, so all of the forward pass runs again
        again = 2 * TOKENS * (d.DIM * e.EXPERTS + e.TOP * 2 * d.DIM * d.HIDDEN)
    assert result.totals["matmul"] == 4 * (ROUTED + again)
    recomputed = again if against == "experts" else 0
    assert found["matmul"] == {"own-batch": -3 * (ROUTED + again - recomputed)} | (
        {"recomputed": -4 * recomputed} if recomputed else {}
    )
    for convention in ("all", "textbook"):
        assert found[convention].pop("replicated") == -3 * 2 * d.DIM * e.EXPERTS
        assert set(found[convention]) == ({"own-batch", "recomputed"} if recomputed else {"own-batch"})
    # Three more batches make three times as many sums, but not for the gradients of an expert: one sum over all tokens.
    outputs = TOKENS * (e.EXPERTS + e.TOP * (d.HIDDEN + d.DIM)) * (2 if again and not recomputed else 1)
    outputs += TOKENS * e.TOP * d.HIDDEN + d.DIM * e.EXPERTS
    assert found["textbook"]["own-batch"] - found["all"]["own-batch"] == 3 * outputs


@pytest.mark.parametrize(
    ("name", "places"),
    [
        pytest.param("experts_with_places", 8, marks=pytest.mark.slow),
        pytest.param("experts_with_room", 24, marks=pytest.mark.heavy),
        pytest.param("experts_with_room_again", 24, marks=pytest.mark.heavy),
    ],
)
def test_experts_with_places(run: Run, name: str, places: int) -> None:
    """Tokens choose two of eight experts, and each expert has places for as many tokens of each of the four ranks."""
    found = each_convention(run(name, 4, "experts_chosen", "training"))
    dropped, width = 4 * (TOKENS * e.TOP - e.EXPERTS * places), d.DIM * d.HIDDEN
    # Two products forward, their weights' gradients, and one gradient of an input.
    products = 5 * 2 * width
    # Of silu x * s(x) forward, and backward s, 1 - s and four more; the weight of a choice, its gradients, and the sum of rows.
    others = (2 + 6) * d.HIDDEN + 2 * d.DIM + (2 * d.DIM + d.DIM - 1 + 1)
    sums = 2 * d.HIDDEN + d.DIM  # of products whose rows are the tokens
    each = {"matmul": products, "all": products + others, "textbook": products + others - sums}
    assert {name: causes["expert-capacity"] for name, causes in found.items()} == {
        name: dropped * flops for name, flops in each.items()
    }


@pytest.mark.slow
def test_parts_of_what_does_not_divide(run: Run) -> None:
    result = run("vocabulary_shared", 4, "vocabulary")
    whole, last = 25, 22  # of 97 columns
    assert by_rank(result) == {rank: 2 * TOKENS * d.DIM * (last if rank == 3 else whole) for rank in range(4)}
