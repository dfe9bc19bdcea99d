"""Experts with places, on traces made by hand: tokens without a place, places without a token, and what is no capacity."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, MATMUL, TEXTBOOK, Convention
from reconcile.core.records import FORWARD, WEIGHT_GRADIENT, Tensor
from reconcile.core.results import Statement, TraceRow
from reconcile.core.work import Work
from tests.products.ranks.test_sums import statement

K, N, TOKENS, TOP = 6, 10, 14, 2
CHOSE = (3, 11, 9, 5)
"""Tokens that chose each of four experts."""


def op(
    layer: str, name: str, ins: tuple[tuple[int, ...], ...], out: tuple[int, ...], phase: str, **work: int
) -> TraceRow:
    tensors = tuple(Tensor(shape, "float32") for shape in ins)
    return TraceRow("", layer, layer, name, tensors, (Tensor(out, "float32"),), 1, phase, Work(**work))


def expert(number: int, rows: int) -> list[TraceRow]:
    """A product, an activation and the gradient of the weight."""
    layer = f"experts.{number}"
    product = {"mac": rows * K * N, "accumulators": rows * N}
    gradient = {"mac": rows * K * N, "accumulators": K * N}
    return [
        op(layer, "aten.mm", ((rows, K), (K, N)), (rows, N), FORWARD, **product),
        op(layer, "aten.relu", ((rows, N),), (rows, N), FORWARD, cmp=rows * N),
        op(layer, "aten.mm", ((K, rows), (rows, N)), (K, N), WEIGHT_GRADIENT, **gradient),
    ]


def router(top: int = TOP) -> list[TraceRow]:
    return [op("router", "aten.topk", ((TOKENS, 4),), (TOKENS, top), FORWARD)]


def settled(
    rank: list[TraceRow], chose: tuple[int, ...] = CHOSE, convention: Convention = MATMUL, top: int = TOP
) -> Statement:
    """Of two ranks, each with a batch and two of four experts, and one device."""
    one = [*router(top), *(row for number, rows in enumerate(chose) for row in expert(number, rows))]
    return statement([(2, [*router(top), *rank])], one, 2, convention=convention)


EACH = {"matmul": 2 * 2 * K * N, "all": 2 * 2 * K * N + N, "textbook": 2 * 2 * K * N + N - N}
"""A row of the product and of the gradient, and the activation: the gradient has as many sums for any rows."""


@pytest.mark.parametrize("convention", [MATMUL, ALL, TEXTBOOK])
@pytest.mark.parametrize("places", [4, 10])  # of each expert for each batch
def test_rows_are_places_and_not_choices(places: int, convention: Convention) -> None:
    found = settled([*expert(0, 2 * places), *expert(1, 2 * places)], convention=convention)
    assert (found.state, found.residual) == (State.EXPLAINED, 0)
    assert found.by_cause()[Cause.EXPERT_CAPACITY] == (2 * TOKENS * TOP - 2 * 4 * places) * EACH[convention.name]
    assert set(found.by_cause()) == {Cause.EXPERT_CAPACITY, Cause.OWN_BATCH}


def test_experts_with_other_numbers_of_rows_have_no_places() -> None:
    """Ranks that send nothing may take a wrong number of tokens for their own."""
    found = settled([*expert(0, 7), *expert(1, 9)])
    assert (found.state, found.residual) == (State.UNEXPLAINED, (2 * TOKENS * TOP - 2 * 16) * EACH["matmul"])
    assert Cause.EXPERT_CAPACITY not in found.by_cause()


def test_one_device_computes_what_tokens_chose() -> None:
    """Its rows are those of its choices, or nothing proves why the ranks have others."""
    rank = [*expert(0, 8), *expert(1, 8)]
    assert settled(rank, (3, 11, 9, 4)).state is State.UNEXPLAINED
    assert settled(rank, top=3).state is State.UNEXPLAINED


def test_one_expert_of_a_rank_proves_no_places() -> None:
    assert Cause.EXPERT_CAPACITY not in settled(expert(0, 8)).by_cause()


def test_as_many_places_as_choices_explain_nothing() -> None:
    found = settled([*expert(0, 14), *expert(1, 14)])
    assert (found.residual, set(found.by_cause())) == (0, {Cause.OWN_BATCH})


def test_every_op_of_the_experts_has_as_many_rows() -> None:
    """An activation that one expert does twice is no place, and a product of other rows proves none."""
    product, activation, gradient = expert(1, 8)
    twice = replace(activation, calls=2, work=activation.work * 2)
    found = settled([*expert(0, 8), product, twice, gradient], convention=ALL)
    assert (found.state, found.residual) == (State.UNEXPLAINED, (2 * TOKENS * TOP - 2 * 24) * N)
    more = [*expert(0, 8), *expert(1, 8), op("experts.0", "aten.mm", ((6, N), (N, K)), (6, K), FORWARD, mac=6 * K * N)]
    assert Cause.EXPERT_CAPACITY in settled([*expert(0, 8), *expert(1, 8)]).by_cause()
    assert settled(more).state is State.UNEXPLAINED


def test_experts_in_one_product_are_neither_in_places_nor_padded() -> None:
    """Its rows are all choices of tokens. Nothing shows whether the ranks have more of them for places."""

    def fused(rows: int) -> TraceRow:
        return op("experts", "aten.mm", ((rows, K), (K, N)), (rows, N), FORWARD, mac=rows * K * N)

    found = statement([(2, [*router(), fused(TOKENS * TOP + 5)])], [*router(), fused(TOKENS * TOP)], 2)
    assert (found.state, found.residual) == (State.UNEXPLAINED, -2 * 2 * 5 * K * N)
