"""The statement from the sum of ranks to one device, on traces made by hand: each cause, and what none explains."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, MATMUL, TEXTBOOK, Convention
from reconcile.core.records import FORWARD, INPUT_GRADIENT, OPTIMIZER, RECOMPUTATION, WEIGHT_GRADIENT, Tensor
from reconcile.core.results import Statement, TraceResult, TraceRow
from reconcile.core.work import Work
from reconcile.products.ranks.sums import Part, Sum


def row(
    layer: str, mac: int, phase: str = FORWARD, op: str = "aten.mm", shape: tuple[int, ...] = (), **work: int
) -> TraceRow:
    tensors = (Tensor(shape, "float32"),) if shape else ()
    return TraceRow("", layer, layer, op, tensors, (), 1, phase, Work(mac=mac, **work))


def trace(*rows: TraceRow) -> TraceResult:
    return TraceResult("t", "torch", State.EQUAL, "", True, "cpu", {}, rows, (), {}, {}, {}, ())


def statement(
    parts: list[tuple[int, list[TraceRow]]],
    one: list[TraceRow],
    batches: int = 1,
    share: Fraction = Fraction(1),
    convention: Convention = MATMUL,
) -> Statement:
    made = [Part(count, trace(*rows)) for count, rows in parts]
    found = Sum(made, trace(*one), batches, share, convention).statement()
    assert found.from_total is not None
    assert found.residual is not None
    total = sum(count * sum(convention.flops(r.work) for r in rows) for count, rows in parts)
    assert found.from_total == total
    assert found.from_total + sum(a.amount for a in found.adjustments) + found.residual == found.to_total
    return found


def causes(found: Statement) -> dict[str, int]:
    assert found.state in (State.EQUAL, State.EXPLAINED), found
    return {cause.value: amount for cause, amount in found.by_cause().items()}


ADDED = row("a", 0, op="c10d.allreduce", add=12)
CASES: dict[str, tuple[list[tuple[int, list[TraceRow]]], list[TraceRow], dict[str, int], dict[str, Any]]] = {
    # what ranks run, one device's rows, causes, what else the statement is given
    "a layer that ranks share": ([(3, [row("head", 25)]), (1, [row("head", 22)])], [row("head", 97)], {}, {}),
    "a layer on every rank": (
        [(4, [row("norm", 7), row("w", 25)])], [row("norm", 7), row("w", 100)], {"replicated": -2 * 3 * 7}, {}
    ),
    "a layer on two of four ranks": (
        [(2, [row("head", 9), row("w", 25)]), (2, [row("w", 25)])], [row("head", 9), row("w", 100)],
        {"replicated": -2 * 9}, {},
    ),
    "two batches on a mesh of 2 x 2": (
        [(4, [row("norm", 7), row("w", 50)])], [row("norm", 7), row("w", 100)],
        {"own-batch": -2 * 107, "replicated": -2 * 2 * 7}, {"batches": 2},
    ),
    "an op of a layer": (
        [(4, [row("a", 3, op="aten.bmm"), row("a", 25)])], [row("a", 3, op="aten.bmm"), row("a", 100)],
        {"replicated": -2 * 3 * 3}, {},
    ),
    "padding of a dimension": (
        [(4, [row("head", 250, shape=(10, 25))])], [row("head", 970, shape=(10, 97))], {"padded-shard": -2 * 30}, {}
    ),
    "additions between ranks": (
        [(4, [row("a", 25), ADDED])], [row("a", 100)], {"added-between-ranks": -48}, {"convention": ALL}
    ),
    "stages that name layers from 0": (
        [(1, [row("0", 10, shape=(1,)), row("1", 20)]), (1, [row("0", 30), row("1", 40)])],
        [row(str(i), 10 * (i + 1)) for i in range(4)], {}, {},
    ),
    # each of 10 sums of 8 products, cut in 4: 2 products each, and one addition less in every part
    "dot products that ranks cut": (
        [(4, [row("out", 20, accumulators=10)])], [row("out", 80, accumulators=10)],
        {"added-between-ranks": 4 * 10 - 10}, {"convention": TEXTBOOK},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_ranks_do_has_its_causes(name: str) -> None:
    parts, one, named, more = CASES[name]
    assert causes(statement(parts, one, **more)) == named


@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 2)])
def test_own_batches_grow_with_what_a_rank_reads(share: Fraction) -> None:
    work = int(100 * share)
    found = statement(
        [(4, [row("a", work), row("a", work, WEIGHT_GRADIENT)])],
        [row("a", 100), row("a", 100, WEIGHT_GRADIENT)],
        4,
        share,
    )
    assert causes(found) == {"own-batch": -2 * 2 * (4 * work - 100)}


def test_an_optimizer_does_not_grow_with_the_batch() -> None:
    rows = [row("a", 8), row("a", 5, OPTIMIZER)]
    assert causes(statement([(4, rows)], rows, 4)) == {"own-batch": -2 * 3 * 8, "replicated": -2 * 3 * 5}
    sharded = [row("a", 8), row("a", 1, OPTIMIZER)]
    assert causes(statement([(4, sharded)], [row("a", 8), row("a", 4, OPTIMIZER)], 4)) == {"own-batch": -2 * 3 * 8}


@pytest.mark.parametrize("layer", ["a", "b"])  # of a name that one device has, and of another
@pytest.mark.parametrize(("shape", "explained"), [((2, 3), True), ((4, 2), False), ((2, 2), False)])
def test_copies_of_a_shard_are_updated_twice(layer: str, shape: tuple[int, ...], explained: bool) -> None:
    """Two of four ranks have the same half of a weight of (4, 3); other shapes are no half of it, whatever their work."""
    one = [row("a", 12, OPTIMIZER, "aten.add", (4, 3))]
    found = statement([(4, [row(layer, 6, OPTIMIZER, "aten.add", shape)])], one, 4)
    assert (found.by_cause(), found.residual) == (({Cause.REPLICATED: -2 * 12}, 0) if explained else ({}, -2 * 12))


def test_halves_of_a_batch_are_no_copies() -> None:
    """Ranks that do a half of a product each, twice as often as one device, may read two batches."""
    one = [row("a", 12, FORWARD, "aten.mm", (4, 3)), row("b", 12, FORWARD, "aten.mm", (4, 3))]
    found = statement([(4, [row(each, 6, FORWARD, "aten.mm", (2, 3)) for each in "ab"])], one)
    assert found.residual == -2 * 24


def test_whole_layers_on_each_rank_may_be_of_several_batches() -> None:
    """Gradients that a program adds by itself: no wrapper says that each rank reads a batch of its own."""
    found = statement([(4, [row("a", 8), row("a", 5, OPTIMIZER)])], [row("a", 8), row("a", 5, OPTIMIZER)])
    assert (found.state, found.residual) == (State.UNEXPLAINED, -2 * 3 * 8)
    assert "nothing shows whether all of them read one batch" in found.reason
    assert found.by_cause() == {Cause.REPLICATED: -2 * 3 * 5}


def test_recomputation_that_one_device_lacks() -> None:
    parts = [(2, [row("a", 50), row("a", 40, RECOMPUTATION)])]
    assert causes(statement(parts, [row("a", 100)])) == {"recomputed": -2 * 80}
    both = [row("a", 100), row("a", 80, RECOMPUTATION)]
    assert causes(statement(parts, both)) == {}


def test_recomputation_of_what_never_ran_has_no_cause() -> None:
    """An op of another kind, or a call too many. A checkpoint in another one computes all of it twice."""
    one, layer = [row("a", 50), row("a", 30, shape=(3,))], [row("a", 25), row("a", 15, shape=(3,))]
    again = [replace(each, phase=RECOMPUTATION) for each in layer]
    strange = row("a", 10, RECOMPUTATION, op="aten.bmm")
    assert statement([(2, [*layer, *again, strange])], one).residual == -2 * 2 * 10
    twice = [replace(each, calls=2, work=each.work * 2) for each in again]
    assert statement([(2, [*layer, twice[0], again[1]])], one).residual == -2 * 2 * (2 * 25 + 15)
    assert causes(statement([(2, [*layer, *twice])], one)) == {"recomputed": -2 * 2 * 2 * (25 + 15)}


def test_two_dimensions_that_differ_are_no_padding() -> None:
    parts = [(4, [row("head", 275, shape=(11, 25))])]
    assert statement(parts, [row("head", 970, shape=(10, 97))]).state is State.UNEXPLAINED


def test_work_that_is_gone_is_a_residual() -> None:
    found = statement([(4, [row("experts", 20), row("w", 25)])], [row("experts", 100), row("w", 100)])
    assert (found.state, found.residual) == (State.UNEXPLAINED, 2 * 20)
    assert [(r.layer, r.amount) for r in found.residuals] == [("experts", 40)]
    assert "less than one device" in found.reason


def test_residuals_that_cancel_are_not_explained() -> None:
    found = statement([(2, [row("a", 60), row("b", 40, op="aten.bmm")])], [row("a", 100), row("b", 100, op="aten.bmm")])
    assert (found.residual, found.state) == (0, State.UNEXPLAINED)


def add(
    layer: str, shape: tuple[int, ...], calls: int = 1, phase: str = INPUT_GRADIENT, op: str = "aten.add"
) -> TraceRow:
    tensor = Tensor(shape, "float32")
    return TraceRow("", layer, layer, op, (tensor, tensor), (tensor,), calls, phase, Work(add=prod(shape) * calls))


PARTS = ("b", "b.query", "b.key")


def block(each: int, *rows: TraceRow) -> list[TraceRow]:
    """Products that ranks share in each of the modules, and these rows."""
    return [*(row(part, each) for part in PARTS), *rows]


def test_additions_in_another_module_are_replicated() -> None:
    """Three branches of a gradient: one device adds them in the block, and ranks in its parts."""
    ranks = block(25, add("b.query", (4, 8)), add("b.key", (4, 8)), add("b", (1, 8)))
    found = statement([(4, ranks)], block(100, add("b", (4, 8), 3)), convention=ALL)
    assert causes(found) == {"replicated": -3 * 2 * 32}
    assert [each.layer for each in found.adjustments] == ["b"]


def test_calls_that_one_device_lacks_are_not_moved() -> None:
    ranks = block(25, add("b.query", (4, 8)), add("b.key", (4, 8)), add("b", (4, 8)))
    found = statement([(4, ranks)], block(100, add("b", (4, 8), 2)), convention=ALL)
    assert (found.state, found.residual) == (State.UNEXPLAINED, -(4 * 3 - 2) * 32)


def test_weights_that_ranks_share_and_weights_that_they_do_not() -> None:
    """The part (2, 8) of one weight has the shape of another whole one, of which each rank has (1, 8): no call is taken twice."""
    ranks = [add("(optimizer)", shape, 1, OPTIMIZER) for shape in ((2, 8), (1, 8), (8,))]
    one = [add("(optimizer)", shape, 1, OPTIMIZER) for shape in ((4, 8), (2, 8), (8,))]
    assert causes(statement([(2, ranks)], one, convention=ALL)) == {"replicated": -8}


@pytest.mark.parametrize(("made", "explained"), [(5, True), (4, False)])
def test_sums_over_the_tokens_of_several_batches(made: int, explained: bool) -> None:
    """An expert's gradients add over the tokens of all batches: two times the products, and not one sum more."""
    parts = [(2, [row("expert", 80, WEIGHT_GRADIENT, accumulators=made), row("w", 8)])]
    one = [row("expert", 80, WEIGHT_GRADIENT, accumulators=10), row("w", 8)]
    found = statement(parts, one, 2, convention=TEXTBOOK)
    assert (found.state is State.EXPLAINED) is explained
    if explained:
        assert causes(found) == {"own-batch": -(2 * 80 + 2 * 8)}


def test_shared_experts_are_updated_once_and_routers_by_each() -> None:
    def weights(router: int, experts: int) -> list[TraceRow]:
        return [add("(optimizer)", (3, 8), router, OPTIMIZER), add("(optimizer)", (9, 8), experts, OPTIMIZER)]

    found = statement([(3, [row("w", 5), *weights(1, 2)])], [row("w", 5), *weights(1, 6)], 3, convention=ALL)
    assert causes(found) == {"own-batch": -2 * 2 * 5, "replicated": -2 * 3 * 8}
    found = statement([(3, [row("w", 5), *weights(1, 2)])], [row("w", 5), *weights(1, 5)], 3, convention=ALL)
    assert found.residual == -(2 * 3 + 9) * 8


def test_sums_that_ranks_cut() -> None:
    def summed(rows: int) -> TraceRow:
        shapes = Tensor((rows, 5), "float32"), Tensor((5,), "float32")
        return TraceRow("", "n", "n", "aten.sum", shapes[:1], shapes[1:], 1, WEIGHT_GRADIENT, Work(add=5 * (rows - 1)))

    found = statement([(4, [summed(2)])], [summed(8)], convention=ALL)
    assert causes(found) == {"added-between-ranks": 5 * (8 - 1) - 4 * 5 * (2 - 1)}


def test_gradients_that_are_means() -> None:
    def op(name: str, size: int = 12, **work: int) -> TraceRow:
        tensor = (Tensor((size,), "float32"),)
        return TraceRow("", "a", "a", name, tensor, tensor, 1, WEIGHT_GRADIENT, Work(**work))

    own = [row("a", 8), op("aten.mul", mul=12), op("c10d.allreduce", add=6)]
    assert causes(statement([(2, own)], [row("a", 8)], 2, convention=ALL)) == {
        "own-batch": -2 * 8, "added-between-ranks": -2 * (12 + 6)
    }  # fmt: skip
    beside = row("a", 0, WEIGHT_GRADIENT, "aten.mul", (3, 2), mul=6)
    assert causes(statement([(2, [*own, beside])], [row("a", 8), beside], 2, convention=ALL)) == {
        "own-batch": -(2 * 8 + 6), "added-between-ranks": -2 * (12 + 6)
    }  # fmt: skip
    other = [row("a", 8), op("aten.mul", 11, mul=11), op("c10d.allreduce", add=6)]
    assert statement([(2, other)], [row("a", 8)], 2, convention=ALL).state is State.UNEXPLAINED


def test_what_no_rank_does_is_not_replicated() -> None:
    found = statement([(4, [row("w", 25), row("gone", 0)])], [row("w", 100), row("gone", 7)])
    assert (found.state, found.residual) == (State.UNEXPLAINED, 2 * 7)
