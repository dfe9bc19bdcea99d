"""Attention in blocks, on traces made by hand: what proves that ranks leave out only what a mask discards."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from reconcile.core.records import BACKWARD, FORWARD, Tensor
from reconcile.core.results import TraceRow
from reconcile.core.work import Work
from reconcile.products.ranks.blocks import in_blocks
from reconcile.products.ranks.rank_calls import Cell
from reconcile.work import attention

OP = "aten._scaled_dot_product_flash_attention_for_cpu"
SEQ, WIDTH = 8, 4


def attends(queries: int, keys: int, causal: bool = False) -> TraceRow:
    shapes = [(1, 1, size, WIDTH) for size in (queries, keys, keys)]
    tensors = tuple(Tensor(shape, "float32") for shape in shapes)
    away = attention.count_discarded(queries, keys) if causal else 0
    work = attention.sdpa(*shapes, masked=causal, away=away)
    return TraceRow("", "a", "a", OP, tensors, tensors[:1], 1, FORWARD, work)


def merges(op: str, rows: int, width: int = WIDTH) -> TraceRow:
    tensor = Tensor((1, 1, rows, width), "float32")
    return TraceRow("", "a", "a", op, (tensor,), (tensor,), 1, FORWARD, Work(add=rows * width))


ONE = [attends(SEQ, SEQ, causal=True)]
FIRST, SECOND = [attends(4, 4, causal=True)], [attends(4, 4, causal=True), attends(4, 4)]


def found(parts: list[list[TraceRow]], one: list[TraceRow], times: int = 1):
    return in_blocks(Cell(dict(enumerate(parts)), one, [times] * len(parts)), FORWARD, Fraction(times))


@pytest.mark.parametrize("times", [1, 3])
def test_the_block_above_the_diagonal_is_left_out(times: int) -> None:
    told = found([FIRST, SECOND], ONE, times)
    assert told is not None
    assert told.skipped.mac == times * 4 * 4 * 2 * WIDTH
    single = 1 + 2 + 2 + 1 + 1  # mask; largest and its difference; exponential; sum; quotient; safe comparison
    assert sum(getattr(told.skipped, name) for name in ("add", "div", "cmp", "special", "mul")) == times * 16 * single


def test_a_block_that_the_mask_keeps_is_no_skipped_block() -> None:
    assert found([FIRST, FIRST], ONE) is None


def test_without_a_mask_nothing_may_be_left_out() -> None:
    assert found([[attends(4, 4)], [attends(4, 4)]], [attends(SEQ, SEQ)]) is None


def test_without_a_mask_all_blocks_are_computed() -> None:
    told = found([[attends(4, 4), attends(4, 4)]] * 2, [attends(SEQ, SEQ)])
    assert told is not None
    assert not told.skipped


def test_whole_heads_are_no_blocks() -> None:
    assert found([ONE], ONE) is None


def test_work_of_another_formula_is_not_explained() -> None:
    other = replace(ONE[0], work=ONE[0].work + Work(mul=1))
    assert found([FIRST, SECOND], [other]) is None


def test_merging_is_of_blocks() -> None:
    told = found([FIRST, [*SECOND, merges("aten.sub", 4), merges("aten.sub", 4, 1)]], ONE)
    assert told is not None
    assert [row.op for row in told.cell.parts.get(1, [])] == []
    for other in (merges("aten.sub", 5), merges("aten.div", 4)):  # of no block's shape, and by no operator that merges
        told = found([FIRST, [*SECOND, other]], ONE)
        assert told is not None
        assert told.cell.parts[1] == [other]


def test_other_phases_have_no_blocks() -> None:
    cell = Cell({0: FIRST, 1: SECOND}, ONE, [1, 1])
    assert in_blocks(cell, "optimizer", Fraction(1)) is None
    assert in_blocks(cell, BACKWARD, Fraction(1)) is None  # their work is no gradient's
