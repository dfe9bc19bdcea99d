"""Attention as GPU kernels are called: layouts, packed sequences and windows against loops over the pairs that see each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.conventions import CAUSAL, MATMUL
from reconcile.core.records import LENGTHS
from reconcile.work import UnknownWork, Work, work_of
from reconcile.work.attention_kernels import GRADIENTS, KERNELS
from tests.work.records_by_hand import make

SMALL = st.integers(1, 6)
BOUND = st.none() | st.integers(0, 4)


def pairs(queries: int, keys: int, left: int | None, right: int | None, to_end: bool = True) -> int:
    """Positions of the scores that a window lets through, one by one; aligned at the last query and key, or at the first."""
    shift = keys - queries if to_end else 0
    found = 0
    for i in range(queries):
        for j in range(keys):
            behind = i + shift - j
            found += (left is None or behind <= left) and (right is None or -behind <= right)
    return found


@settings(deadline=None, max_examples=25)
@given(sq=SMALL, sk=SMALL, left=BOUND, right=BOUND, causal=st.booleans(), groups=st.integers(1, 2))
def test_a_window_leaves_the_pairs_that_see_each_other(sq, sk, left, right, causal, groups) -> None:
    heads, d, dv = 2 * groups, 3, 5
    shapes = [(2, sq, heads, d), (2, sk, 2, d), (2, sk, 2, dv)]
    attrs = {"window_size_left": left, "window_size_right": right, "is_causal": causal, "cum_seq_q": None}
    work = work_of(make("aten._flash_attention_forward", shapes, [], **attrs))
    assert MATMUL.flops(work) == 2 * 2 * heads * sq * sk * (d + dv)
    assert CAUSAL.flops(work) == 2 * 2 * heads * pairs(sq, sk, left, 0 if causal else right) * (d + dv)
    # in the gradient the scores are not computed again: g v^T and its transpose on dv, ds k and its transpose on d
    back = work_of(make("aten._flash_attention_backward", [(2, sq, heads, dv), *shapes], [], **attrs))
    assert MATMUL.flops(back) == 2 * 2 * heads * sq * sk * 2 * (d + dv)
    assert CAUSAL.flops(back) == 2 * 2 * heads * pairs(sq, sk, left, 0 if causal else right) * 2 * (d + dv)


@pytest.mark.parametrize(("kind", "to_end"), [(1, False), (2, True)])
@pytest.mark.parametrize("window", [None, 2])
def test_the_efficient_kernels_two_causal_masks(kind, to_end, window) -> None:
    attrs = {"custom_mask_type": kind, "window_size": window, "bias": None, "cu_seqlens_q": None}
    work = work_of(make("aten._efficient_attention_forward", [(1, 3, 2, 4), (1, 5, 2, 4), (1, 5, 2, 4)], [], **attrs))
    seen = pairs(3, 5, None if window is None else window - 1, 0, to_end)
    assert CAUSAL.flops(work) == 2 * 2 * seen * (4 + 4)


@settings(deadline=None, max_examples=20)
@given(lengths=st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=4), causal=st.booleans(), data=st.data())
def test_packed_sequences_are_each_alone(lengths, causal, data) -> None:
    queries, keys = ([each[i] for each in lengths] for i in (0, 1))
    name = data.draw(st.sampled_from(sorted(name for name in KERNELS if KERNELS[name].query == 0)))
    shapes = [(sum(queries), 4, 3), (sum(keys), 2, 3), (sum(keys), 2, 7)]
    attrs = {"causal" if "flash_attn" in name or "flashattn" in name else "is_causal": causal}
    if name == "aten._efficient_attention_forward":
        shapes, attrs = [(1, *shape) for shape in shapes], {"custom_mask_type": 2 * causal, "bias": None}
    work = work_of(make(name, shapes, [], **attrs, **{LENGTHS: [queries, keys]}))
    assert MATMUL.flops(work) == 2 * 4 * sum(q * k for q, k in lengths) * (3 + 7)
    seen = sum(pairs(q, k, None, 0 if causal else None) for q, k in lengths)
    assert CAUSAL.flops(work) == 2 * 4 * seen * (3 + 7)


def test_lengths_that_nobody_knows_are_unknown() -> None:
    shapes = [(10, 4, 3)] * 3
    for name in ("torch_attn._varlen_attn", "aten._flash_attention_forward", "flash_attn._flash_attn_varlen_forward"):
        with pytest.raises(UnknownWork, match="lengths are values of a tensor"):
            work_of(make(name, shapes, []))
    with pytest.raises(UnknownWork, match="lengths are values"):
        work_of(make("aten._efficient_attention_forward", [(1, 10, 4, 3)] * 3, [], bias=None, cu_seqlens_q=1))


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_the_parts_of_a_gradient_are_the_whole(name) -> None:
    shapes = [(2, 6, 4, 3)] * 4
    attrs = {"bias_requires_grad": False}
    whole = work_of(make(name, shapes, [], **attrs))
    parts = [
        work_of(make(name, shapes, [], **attrs, part=part)) for part in ("scores", "value", "query", "key", "mask")
    ]
    assert sum(parts, Work()) == whole
    heads, rows = (6, 4) if GRADIENTS[name].heads_first else (4, 6)
    assert MATMUL.flops(whole) == 2 * 4 * 2 * heads * rows * rows * 3


def test_a_bias_that_needs_a_gradient_is_unknown() -> None:
    with pytest.raises(UnknownWork, match="gradient of a bias"):
        work_of(make("aten._efficient_attention_backward", [(2, 6, 4, 3)] * 4, [], bias_requires_grad=True))


def test_lengths_are_read_where_they_have_values() -> None:
    torch = pytest.importorskip("torch")
    from reconcile.adapters.pytorch.tracing.call_records import lengths_of

    ends = torch.tensor([0, 3, 3, 10], dtype=torch.int32)
    assert lengths_of({"cum_seq_q": ends, "cum_seq_k": ends[:3]}, {}) == [[3, 0, 7], [3, 0]]
    assert lengths_of({"cu_seqlens_q": ends}, {"seqused_k": torch.tensor([1, 2, 5])}) == [[3, 0, 7], [1, 2, 5]]
    assert lengths_of({"cu_seq_q": ends}, {}) == [[3, 0, 7], [3, 0, 7]]
    assert lengths_of({"cum_seq_q": ends.to("meta"), "cum_seq_k": ends}, {}) is None
    assert lengths_of({"cum_seq_q": None, "query": ends}, {}) is None
