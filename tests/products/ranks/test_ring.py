"""Context parallelism: what each rank of a ring multiplies, by its blocks, and every FLOP to one device named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import ALL, CAUSAL, MATMUL, Convention
from reconcile.launch.request import run_request
from reconcile.products.ranks import ranked
from reconcile.products.ranks.sums import Part, Sum
from tests.products.ranks.test_gloo import products, really

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

BATCH, HEADS, SEQ, WIDTH = 2, 4, 16, 8
"""Those of ring.py."""
DIM, MATRICES = HEADS * WIDTH, BATCH * HEADS
PROJECTIONS = 2 * BATCH * SEQ * 4 * DIM * DIM
STEP = 3 * PROJECTIONS - 2 * BATCH * SEQ * 3 * DIM * DIM  # no gradient of the input
A_SCORE = 2 * WIDTH * (2 + 4)
"""Two products of the forward pass, and four of the backward pass."""

Run = Callable[..., ranked.Ranked]
Block = tuple[int, int]


def blocks(name: str, rank: int, world: int) -> Iterator[Block]:
    """The queries and keys of each block, brute force: positions by owner, and a block is there if the mask keeps any of it."""
    length = SEQ // world
    if name == "in_order":
        yield from [(length, length)] * (rank + 1)
        return
    half = length // 2
    own = [(rank, 2 * world - 1 - rank) for rank in range(world)]  # of the halves, in order
    yield length, length
    for other in range(world):
        if other != rank:
            kept = [(mine, theirs) for mine in own[rank] for theirs in own[other] if theirs < mine]
            queries, keys = ({pair[i] for pair in kept} for i in (0, 1))
            assert len(kept) == len(queries) * len(keys)
            yield half * len(queries), half * len(keys)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    shutil.copy(Path(__file__).with_name("ring.py"), tmp_path)
    monkeypatch.chdir(tmp_path)

    return lambda name, world: ranked.run_ranks(run_request(torch=f"ring:{name}"), world, (), "ring:one")


def causes(result: ranked.Ranked, convention: Convention) -> dict[str, int]:
    """By name; the runs are counted again under this convention."""
    assert result.one is not None
    parts = [Part(len(fold.ranks), fold.trace) for fold in result.folds]
    world = result.world
    found = Sum(parts, result.one.traces[0], world.batches, world.share, convention).statement()
    assert (found.residual, found.state) == (0, State.EXPLAINED if found.adjustments else State.EQUAL)
    return {cause.value: amount for cause, amount in found.by_cause().items()}


def merged(name: str, world: int) -> int:
    """Single operations of a ring beyond those of the same scores on one device, of one head of one sequence.

    A block has rows of its own: each scales its query and key in both passes, and has one comparison and two additions fewer
    than scores. Below the diagonal it needs no mask. Merging it takes 3 * WIDTH + 10 operations for each of its rows, and its
    gradients are added to those of other blocks.
    """
    length = SEQ // world
    every = [list(blocks(name, rank, world)) for rank in range(world)]
    more = sum(2 * WIDTH * (q + k) - 3 * q for some in every for q, k in some) - (2 * WIDTH * 2 * SEQ - 3 * SEQ)
    more -= sum(q * k for some in every for q, k in some[1:])
    more += sum((3 * WIDTH + 10) * q for some in every for q, _ in some[1:])
    more += sum(WIDTH * (q + 2 * k) for some in every for q, k in some)
    if name == "in_order":  # ranks add zeros for the blocks that they skip
        more += sum(world - len(some) for some in every) * WIDTH * 3 * length
    return more


CASES = [
    pytest.param("balanced", 2, marks=pytest.mark.slow),
    *(pytest.param(*case, marks=pytest.mark.heavy) for case in (("balanced", 4), ("in_order", 4), ("sharded", 4))),
]


@pytest.mark.parametrize(("name", "world"), CASES)
def test_a_ring_skips_what_the_mask_discards(run: Run, name: str, world: int) -> None:
    result = run(name, world)
    assert result.exit_code == 0
    found = {rank: fold.trace.totals["matmul"] for fold in result.folds for rank in fold.ranks}
    scores = {rank: MATRICES * sum(q * k for q, k in blocks(name, rank, world)) for rank in range(world)}
    assert found == {rank: STEP // world + A_SCORE * scores[rank] for rank in range(world)}
    assert (len(set(found.values())) == 1) is (name != "in_order")  # the halves balance the ranks
    skipped = MATRICES * SEQ * SEQ * (world - 1) // (2 * world)
    assert causes(result, MATMUL) == {"blocks-skipped": A_SCORE * skipped}
    assert causes(result, CAUSAL) == {}
    assert "ran on the CPU's operator" in " ".join(result.folds[0].trace.notes)
    if name != "sharded":  # whose gradients are added between ranks, too
        single = 7 + 4  # of a score: its mask and softmax, and the gradient of that
        assert causes(result, ALL) == {
            "blocks-skipped": (A_SCORE + single) * skipped,
            "attention-in-blocks": -MATRICES * merged(name, world),
            "added-between-ranks": world - 1,  # the loss is cut
        }


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["balanced", "in_order"])
def test_two_real_processes_run_the_same_ring(run: Run, tmp_path: Path, name: str) -> None:
    """On gloo, with values: each process also holds its gradients against those of one device."""
    shutil.copy(Path(__file__).with_name("gloo.py"), tmp_path)
    told = really(name, tmp_path, "ring.py")
    faked = ranked.run_ranks(run_request(torch=f"ring:{name}"), 2, (0, 1))
    for fold in faked.folds:
        assert json.loads(json.dumps(products(fold.trace))) == told[fold.ranks[0]]
