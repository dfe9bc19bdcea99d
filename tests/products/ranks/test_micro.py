"""Micro-batches of a pipeline, on traces made by hand: what their gradients cost to add, and what is no such thing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import ALL, TEXTBOOK, Convention
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OTHER, WEIGHT_GRADIENT, Tensor
from reconcile.core.results import Statement, TraceRow
from reconcile.core.work import Work
from tests.products.ranks.test_sums import statement

M, N, K, B = 4, 6, 5, 8
"""Micro-batches; a layer's outputs and inputs; the batch of a step."""


def tensors(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(shape, "float32") for shape in shapes)


def mm(layer: str, m: int, k: int, n: int, phase: str = FORWARD, calls: int = 1) -> TraceRow:
    work = Work(mac=m * k * n, accumulators=m * n) * calls
    return TraceRow("", layer, layer, "aten.mm", tensors((m, k), (k, n)), tensors((m, n)), calls, phase, work)


def add(layer: str, shape: tuple[int, int], phase: str, calls: int = 1) -> TraceRow:
    work = Work(add=shape[0] * shape[1]) * calls
    return TraceRow("", layer, layer, "aten.add", tensors(shape, shape), tensors(shape), calls, phase, work)


def div(shape: tuple[int, int], calls: int = 1) -> TraceRow:
    work = Work(div=shape[0] * shape[1]) * calls
    return TraceRow("", "(step)", "(step)", "aten.div", tensors(shape), tensors(shape), calls, OTHER, work)


def mean(batch: int, calls: int = 1) -> TraceRow:
    """batch - 1 additions and a division."""
    work = Work(add=batch - 1, div=1) * calls
    return TraceRow("", "(loss)", "(loss)", "aten.mean", tensors((batch,)), tensors(()), calls, LOSS, work)


def step(parts: int) -> list[TraceRow]:
    """A linear layer and the mean of its loss, by this many micro-batches."""
    return [
        mm("a", B // parts, K, N, calls=parts),
        mean(B // parts, parts),
        mm("a", N, B // parts, K, WEIGHT_GRADIENT, parts),
    ]


def settled(
    ranks: list[list[TraceRow]], one: list[TraceRow], convention: Convention = ALL, count: int = 1, batches: int = 1
) -> Statement:
    """Each list is what ``count`` ranks do."""
    return statement([(count, rows) for rows in ranks], one, batches, convention=convention)


def causes(found: Statement) -> dict[str, int]:
    assert (found.residual, found.state) == (0, State.EXPLAINED), found
    return {cause.value: amount for cause, amount in found.by_cause().items() if amount}


@pytest.mark.parametrize("convention", [ALL, TEXTBOOK])
def test_gradients_of_parts_are_added_and_scaled(convention: Convention) -> None:
    rank = [*step(M), add("a", (N, K), WEIGHT_GRADIENT, M - 1), div((N, K))]
    added, scaled = (M - 1) * N * K, N * K
    # Each micro-batch divides its mean: B - 1 additions and 1 division have become M (B / M - 1) and M.
    means = M * (B // M - 1 + 1) - (B - 1 + 1)
    # A gradient is cut into M sums of B / M: each saves one addition where a convention saves it.
    saved = (M - 1) * N * K if convention is TEXTBOOK else 0
    assert means == 0
    assert causes(settled([rank], step(1), convention)) == {"micro-batches": -(added + scaled - saved)}


def test_what_each_part_ends_with_is_of_micro_batches() -> None:
    once, parts = mean(B), mean(B // M, M)
    more, alone = replace(parts, work=parts.work + Work(mul=M)), replace(once, work=once.work + Work(mul=1))
    gradients = add("a", (N, K), WEIGHT_GRADIENT, M - 1)
    found = settled([[mm("a", 2, K, N, calls=M), more, gradients]], [mm("a", B, K, N), alone])
    assert causes(found) == {"micro-batches": -((M - 1) + (M - 1) * N * K)}


def test_a_stages_input_gets_its_gradients_in_another_layer() -> None:
    """Autograd adds them in the module that reads the input first; of one device in the one around it."""
    gradients = add("a.norm", (N, K), WEIGHT_GRADIENT, M - 1)
    rank = [mm("a.norm", B, K, N), gradients, add("a.norm", (B // M, K), INPUT_GRADIENT, M)]
    one = [mm("a.norm", B, K, N), add("a", (B, K), INPUT_GRADIENT)]
    assert causes(settled([rank], one)) == {"micro-batches": -(M - 1) * N * K}


def test_an_addition_too_many_is_no_micro_batch() -> None:
    gradients = add("a.norm", (N, K), WEIGHT_GRADIENT, M - 1)
    rank = [mm("a.norm", B, K, N), gradients, add("a.norm", (B // M, K), INPUT_GRADIENT, M + 1)]
    found = settled([rank], [mm("a.norm", B, K, N), add("a", (B, K), INPUT_GRADIENT)])
    assert (found.state, found.residual) == (State.UNEXPLAINED, -(B // M) * K)


def test_as_many_additions_as_gradients_are_one_too_many() -> None:
    rank = [*step(M), add("a", (N, K), WEIGHT_GRADIENT, M), div((N, K))]
    found = settled([rank], step(1))
    assert (found.state, found.residual) == (State.UNEXPLAINED, -M * N * K)


SHARED, GRADIENTS = mm("w", B // M, K, N // 2, calls=M), add("w", (N // 2, K), WEIGHT_GRADIENT, M - 1)
"""What each of two ranks does of a layer that they share, and of its gradient."""


def test_what_two_ranks_of_a_stage_end_each_part_with() -> None:
    """Both do the mean of the loss: one of them is replicated, and each divides for every micro-batch."""
    rank = [SHARED, GRADIENTS, replace(mean(B // M, M), work=Work(add=B - M, div=2 * M))]
    one = [mm("w", B, K, N), replace(mean(B), work=Work(add=B - 1, div=2))]
    ends = (B - M + 2 * M) - (B - 1 + 2)
    assert causes(settled([rank], one, count=2)) == {
        "replicated": -(B - 1 + 2),
        "micro-batches": -(2 * ends + 2 * (M - 1) * K * N // 2),
    }


def test_a_part_that_one_rank_does_too_often_is_neither() -> None:
    rank = [SHARED, GRADIENTS, mean(B // M, M + 1)]
    assert settled([rank], [mm("w", B, K, N), mean(B)], count=2).state is State.UNEXPLAINED


def test_sums_that_micro_batches_cut_are_not_between_ranks() -> None:
    """Two ranks have half of the outputs each: a sum over the inputs is whole, and one over the tokens is cut in four."""
    gradients = add("w.weight", (N // 2, K), WEIGHT_GRADIENT, M - 1)
    rank = [SHARED, mm("w", N // 2, B // M, K, WEIGHT_GRADIENT, M), gradients]
    one = [mm("w", B, K, N), mm("w", N, B, K, WEIGHT_GRADIENT)]
    assert causes(settled([rank], one, ALL, 2)) == {"micro-batches": -(M - 1) * N * K}
    assert causes(settled([rank], one, TEXTBOOK, 2)) == {}  # each sum that is cut saves the addition of its parts


def test_sums_that_ranks_and_micro_batches_cut() -> None:
    """Two ranks have half of the inputs each, so that they cut every sum of the forward pass in two."""
    rank = [
        mm("w", B // M, 4, N, calls=M),
        mm("w", N, B // M, 4, WEIGHT_GRADIENT, M),
        add("w", (N, 4), WEIGHT_GRADIENT, 3),
    ]
    one = [mm("w", B, 8, N), mm("w", N, B, 8, WEIGHT_GRADIENT)]
    assert causes(settled([rank], one, TEXTBOOK, 2)) == {"added-between-ranks": B * N}


def test_ranks_of_a_stage_add_gradients_in_another_layer() -> None:
    """Both add them, part by part, in the module that reads the stage's input first."""
    rank = [SHARED, GRADIENTS, add("w", (B // M, K), INPUT_GRADIENT, M)]
    one = [mm("w", B, K, N), mm("a", B, K, N), add("a", (B, K), INPUT_GRADIENT)]
    found = causes(settled([[*rank, mm("a", B // M, K, N // 2, calls=M)]], one, count=2))
    assert found == {"replicated": -B * K, "micro-batches": -2 * (M - 1) * K * N // 2}


@pytest.mark.parametrize(("rows", "explained"), [(N // 2, True), (N // 3 + 1, True), (N + 1, False)])
def test_parts_of_gradients_that_a_rank_keeps_are_scaled(rows: int, explained: bool) -> None:
    rank = [*step(M), add("a", (N, K), WEIGHT_GRADIENT, M - 1), div((rows, K))]
    found = settled([rank], step(1))
    assert (found.state, found.residual) == ((State.EXPLAINED, 0) if explained else (State.UNEXPLAINED, -rows * K))
