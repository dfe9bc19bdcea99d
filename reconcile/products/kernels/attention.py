"""Rules for fused attention kernels (flash-attention, memory-efficient, cuDNN): multiply-adds of their blocks of scores."""

from __future__ import annotations

import re
from math import ceil

from ...core.causes import Cause
from .ncu import Launch
from .tiles import Case, Product, round_up


def blocks(queries: int, keys: int, rows: int, columns: int, causal: bool) -> int:
    """Blocks of scores that are computed: all, or with a causal mask those with a position that it lets through.

    The last query stands at the last key.
    """
    found = 0
    for i in range(ceil(queries / rows)):
        last = min((i + 1) * rows, queries) + keys - queries
        found += ceil(min(last, keys) / columns) if causal else ceil(keys / columns)
    return found


def in_blocks(
    case: Case, rows: int, columns: int, *, heads_first: bool, side: int = 1, depth: int = 1, times: int = 1
) -> Product | None:
    """Blocks of ``rows`` queries and ``columns`` keys. The backward kernel multiplies queries and keys again.

    A head's width is rounded up to ``depth`` where it is summed over, and to ``side`` where it is a side of the result.
    ``times``: how many products of a shorter type stand for one.
    """
    query, key, value = case.inputs[1:4] if case.backward else case.inputs[:3]
    if heads_first or "scaled_dot_product" in case.op:
        (batch, heads, queries, width), keys, wide = query, key[2], value[3]
    else:
        (batch, queries, heads, width), keys, wide = query, key[1], value[3]
    pairs = batch * heads * queries * keys
    each = 2 * (width + wide) if case.backward else width + wide
    if pairs * each != case.macs:
        return None
    again = width if case.backward else 0
    if case.backward:  # q k and g v are sums over a width; the gradients of q, k and v have one as a side
        whole = round_up(width, depth) + round_up(wide, depth) + 2 * round_up(width, side) + round_up(wide, side)
    else:
        whole = round_up(width, depth) + round_up(wide, side)
    size = batch * heads * rows * columns
    every = size * blocks(queries, keys, rows, columns, False)
    made = size * blocks(queries, keys, rows, columns, case.masked > 0)
    shape = f"blocks of {rows} x {columns} scores"
    more = [
        (Cause.SCORES_AGAIN, pairs * again, "queries and keys are multiplied again"),
        (Cause.TILE_PADDING, every * whole - pairs * (each + again), shape),
        (Cause.BLOCKS_SKIPPED, (made - every) * whole, shape),
        (Cause.SPLIT_PRECISION, made * whole * (times - 1), f"{times} products of TF32 for one of float32"),
    ]
    return Product(case.macs, tuple(line for line in more if line[1]))


def flash(launch: Launch, case: Case) -> Product | None:
    """flash-attention: ``Flash_fwd_kernel_traits<width, queries, keys, ...>`` (csrc/flash_attn/src/kernel_traits.h)."""
    traits = re.search(r"kernel_traits<([1-9]\d*), ([1-9]\d*), ([1-9]\d*)", launch.name)
    if traits is None:
        return None
    width, rows, columns = map(int, traits.groups())
    return in_blocks(case, rows, columns, heads_first=False, side=width, depth=width)


def efficient(launch: Launch, case: Case) -> Product | None:
    """``fmha_cutlassF_f32_aligned_64x64_...`` (ATen native/transformers/cuda/mem_eff_attention).

    A width is summed over 32 at a time and is a side of 64; float32 is three products of TF32 (CUTLASS, OpMultiplyAddFastF32).
    """
    found = re.search(r"_(f32|f16|bf16)_\w*?([1-9]\d*)x([1-9]\d*)_", launch.short)
    if found is None:
        return None
    rows, columns = int(found[2]), int(found[3])
    return in_blocks(
        case, rows, columns, heads_first=False, side=columns, depth=32, times=3 if found[1] == "f32" else 1
    )


def cudnn(launch: Launch, case: Case) -> Product | None:
    """``..._sdpa_..._fprop_..._64x128x64_...``: queries, keys, width. The backward kernel works on 128 x 128 scores at a time,
    whatever its name says.
    """
    found = re.search(r"_([1-9]\d*)x([1-9]\d*)x([1-9]\d*)_", launch.short)
    if found is None:
        return None
    rows, columns, width = (128, 128, int(found[3])) if case.backward else map(int, found.groups())
    return in_blocks(case, rows, columns, heads_first=True, side=width, depth=width)
