"""Micro-batches of a pipeline, on traces made by hand: what their gradients cost to add, and what is no such thing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import ALL, TEXTBOOK, Convention
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OTHER, WEIGHT_GRADIENT, Tensor
from reconcile.core.results import Statement, TraceResult, TraceRow
from reconcile.core.work import Work
from reconcile.ranks.sums import Part, Sum

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


def settled(ranks: list[list[TraceRow]], one: list[TraceRow], convention: Convention = ALL) -> Statement:
    def trace(rows: list[TraceRow]) -> TraceResult:
        return TraceResult("t", "torch", State.EQUAL, "", True, "cpu", {}, tuple(rows), (), {}, {}, {}, ())

    return Sum([Part(1, trace(rows)) for rows in ranks], trace(one), 1, Fraction(1), convention).statement()


def causes(found: Statement) -> dict[str, int]:
    assert (found.residual, found.state) == (0, State.EXPLAINED), found
    return {cause.value: amount for cause, amount in found.by_cause().items()}


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


def test_a_division_of_something_else_is_none_either() -> None:
    rank = [*step(M), add("a", (N, K), WEIGHT_GRADIENT, M - 1), div((N, K + 1))]
    found = settled([rank], step(1))
    assert (found.state, found.residual) == (State.UNEXPLAINED, -N * (K + 1))
