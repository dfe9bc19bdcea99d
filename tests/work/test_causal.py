"""Products that a causal mask discards: PyTorch's own mask, naive loops, and masks that a trace does not show."""

from __future__ import annotations

import math

import pytest

from reconcile.core.conventions import CAUSAL, MATMUL
from reconcile.work import Work, work_of
from reconcile.work.attention import count_discarded, sdpa, sdpa_gradient
from reconcile.work.attention_masks import is_taken_whole, unknown_mask
from tests.work.records_by_hand import make

SIZES = [(1, 1), (1, 5), (2, 5), (5, 5), (6, 6), (5, 2), (7, 1)]
"""Queries and keys."""


@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_the_discarded_positions_are_those_that_change_no_result(queries: int, keys: int) -> None:
    torch = pytest.importorskip("torch")
    values = torch.zeros(1, keys, 3, requires_grad=True, dtype=torch.float64)
    query, key = (torch.ones(1, n, 2, dtype=torch.float64) for n in (queries, keys))
    rows = torch.nn.functional.scaled_dot_product_attention(query, key, values, is_causal=True)[0, :, 0]
    read = [torch.autograd.grad(row, values, retain_graph=True)[0][0, :, 0] for row in rows]
    assert count_discarded(queries, keys) == sum(int((weights == 0).sum()) for weights in read)


def loops(batch: int, heads: int, queries: int, keys: int, d: int, dv: int) -> dict[str, int]:
    """Multiply-adds of attention and of each part of its gradient, one by one, where key j is not after query i."""
    counts = dict.fromkeys(("forward", "scores", "value", "query", "key"), 0)
    for _ in range(batch * heads):
        for i in range(queries):
            for j in range(keys):
                if j <= i:
                    for _ in range(d):
                        counts["forward"] += 1
                        counts["query"] += 1
                        counts["key"] += 1
                    for _ in range(dv):
                        counts["forward"] += 1
                        counts["scores"] += 1
                        counts["value"] += 1
    return counts


@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_the_products_that_are_left_are_those_of_the_loops(queries: int, keys: int) -> None:
    shapes = [(2, 4, queries, 3), (2, 2, keys, 3), (2, 2, keys, 5)]  # two query heads for each key head
    expected = loops(2, 4, queries, keys, 3, 5)
    attrs = {"is_causal": True, "attn_mask": None}
    forward = work_of(make("aten.scaled_dot_product_attention", shapes, [], **attrs))
    assert CAUSAL.flops(forward) == 2 * expected.pop("forward")
    assert MATMUL.flops(forward) == 2 * 8 * queries * keys * (3 + 5)
    backward = "aten.scaled_dot_product_attention_backward"
    parts = {
        part: work_of(make(backward, shapes, [], **attrs, needs=[True] * 3, part=part))
        for part in ("scores", "value", "query", "key")
    }
    assert {part: CAUSAL.flops(work) for part, work in parts.items()} == {p: 2 * n for p, n in expected.items()}
    whole = work_of(make(backward, shapes, [], **attrs, needs=[True] * 3))
    assert CAUSAL.flops(whole) == 2 * sum(expected.values())
    kernel = "aten._scaled_dot_product_flash_attention_for_cpu_backward"
    gradient = (2, 4, queries, 5)
    assert CAUSAL.flops(work_of(make(kernel, [gradient, *shapes], [], **attrs))) == 2 * sum(expected.values())


def test_without_a_mask_all_products_count() -> None:
    shapes = ((1, 1, 1, 4), (1, 1, 9, 4), (1, 1, 9, 4))  # one more token, with eight in the cache
    for work in (sdpa(*shapes, masked=False), sum(sdpa_gradient(*shapes).values(), Work())):
        assert work.masked == 0
        assert CAUSAL.flops(work) == MATMUL.flops(work)


def test_sequences_of_nested_tensors_have_masks_of_their_own() -> None:
    rows = [[[2, n, 3] for n in (4, 6)]] * 3
    op = make("aten.scaled_dot_product_attention", [(2, 2, 6, 3)] * 3, [], is_causal=True, attn_mask=None, rows=rows)
    assert work_of(op).masked == sum(2 * math.comb(n, 2) * 2 * 3 for n in (4, 6))


def test_a_part_of_the_multiply_adds_is_no_difference_of_work() -> None:
    assert Work(mac=6, masked=2) == Work(mac=6)
    total = Work(mac=6, masked=2) * 3 + Work(mac=2) - Work(mac=8, masked=2)
    assert (total, total.masked) == (Work(mac=12), 4)
    assert ((total // 4).mac, (total // 4).masked) == (3, 1)
    assert (Work(masked=3) + Work(mac=1)).masked == 3


FOUR = [(2, 2, 5, 4)] * 3
MASK = (5, 5)


def test_a_mask_of_which_the_trace_has_the_shape_is_unknown() -> None:
    sdpa_ = "aten.scaled_dot_product_attention"
    kernels = [f"aten._scaled_dot_product_{kind}_attention" for kind in ("efficient", "cudnn")]
    known = [
        make(sdpa_, FOUR, [], attn_mask=None, is_causal=True),
        make(sdpa_, FOUR, [], attn_mask=None),
        make("aten._scaled_dot_product_flash_attention", FOUR, [], is_causal=True),
        *(make(kernel, FOUR, [], attn_bias=None) for kernel in kernels),
        make("higher_order.flex_attention", FOUR, [], block_mask=False),
        make("aten.bmm", FOUR[:2], []),
    ]
    assert [op.op for op in known if unknown_mask(op)] == []
    unknown = [
        make(sdpa_, [*FOUR, MASK], []),
        make(f"{sdpa_}_backward", [*FOUR, MASK], []),
        *(make(kernel, [*FOUR, MASK], []) for kernel in kernels),
        make("aten._native_multi_head_attention", [*FOUR, MASK], []),
    ]
    assert [op.op for op in unknown if "a mask whose values are not known" not in unknown_mask(op)] == []
    assert "a block mask" in unknown_mask(make("higher_order.flex_attention", FOUR, [], block_mask=True))


def test_products_of_two_stacks_of_matrices_are_taken_whole() -> None:
    stacks, weight = make("", [(8, 5, 4), (8, 4, 5)], []).inputs, make("", [(8, 5, 4), (4, 5)], []).inputs
    pairs = ("aten.bmm", "aten.baddbmm", "BatchMatMulV2", "Einsum")
    assert [op for op in pairs if not is_taken_whole(op, stacks)] == []
    assert [op for op in (*pairs, "aten.mm") if is_taken_whole(op, weight)] == []
    assert not is_taken_whole("aten.mul", stacks)
