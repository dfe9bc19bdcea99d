"""Work formulas of ONNX Runtime's attention (com.microsoft): its products, by onnxruntime, docs/ContribOperators.md.

The rest is a kernel's choice. Shapes there: B batch, S queries, L keys, H heads, D a head's width.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from ....core.records import Op
from ....core.work import MASKED, SINGLE_COMPONENTS, ZERO, UnknownWork, Work, formula
from ....work import attention
from ....work.contraction import dots
from ....work.shapes import attr, shape
from ..microsoft import INPUTS, MICROSOFT

Sizes = tuple[int, ...]
PRODUCTS_ALONE = "attention.sdpa%s; the rest is not fixed: onnxruntime, docs/ContribOperators.md"
ROOM_FOR_MORE = (
    "the cache of %s may have room for more keys than it holds, and a value says how many: its products are unknown"
)


def _sizes(op: Op) -> dict[str, Sizes]:
    """The shapes of the inputs that are given, by their names."""
    names = (name for name in INPUTS[op.op.rpartition(".")[2]].split() if op.given(name))
    return dict(zip(names, map(partial(shape, op), range(len(op.inputs))), strict=False))


def _attend(op: Op, heads: Sizes, sizes: Sequence[Sizes], past: int, masked: bool, before: Work = ZERO) -> NoReturn:
    """Raises what is known: products of (B, S, H D), (B, L, H D) and (B, L, H Dv), or of (B, H, S, D) where heads are apart."""
    query, key, value = (
        (s[0], own, s[1], s[2] // own) if len(s) == 3 else s for s, own in zip(sizes, heads, strict=True)
    )
    if op.outputs[0].shape not in (None, (query[0], query[2], query[1] * value[3])):
        raise UnknownWork(f"{op.op} has another result than its values give")
    key, value = (*key[:2], key[2] + past, key[3]), (*value[:2], value[2] + past, value[3])
    away = attention.outside(query[2], key[2], None, 0, past) if op.attrs.get("unidirectional") and not masked else 0
    work = before + attention.sdpa(query, key, value, masked=False, away=away)
    reason = f"what {op.op} does beside its products is a kernel's choice" + ", what its mask discards a value" * masked
    raise UnknownWork(reason, (*SINGLE_COMPONENTS, *[MASKED] * masked), work.only(("mac", "accumulators", MASKED)))


@formula(f"{MICROSOFT}.Attention", source=PRODUCTS_ALONE % " after one product for queries, keys and values")
def _attention(op: Op) -> Work:
    # input (B, S, I), weights (I, 2 H D + H Dv), past (2, B, H, L, D)
    given, heads = _sizes(op), int(attr(op, "num_heads"))
    (batch, length, wide), columns = given["input"], given["weights"][1]
    if op.attrs.get("past_present_share_buffer"):
        raise UnknownWork(ROOM_FOR_MORE % op.op)
    sizes = op.attrs.get("qkv_hidden_sizes") or [columns // 3] * 3
    query, key, value = ((batch, length, int(size)) for size in sizes)
    past = given["past"][3] if "past" in given else 0
    masked = "mask_index" in given or "attention_bias" in given
    _attend(op, (heads,) * 3, (query, key, value), past, masked, dots(batch * length * columns, wide))


@formula(f"{MICROSOFT}.MultiHeadAttention", source=PRODUCTS_ALONE % "")
def _multi_head(op: Op) -> Work:
    # query (B, S, H D) or all as (B, S, H, 3, D); key, value (B, L, H D), (B, H, L, D), or both as (B, L, H, 2, D)
    given = _sizes(op)
    if "past_sequence_length" in given:
        raise UnknownWork(ROOM_FOR_MORE % op.op)
    query = given["query"]
    key = given.get("key", query)
    sizes = [(s[0], s[2], s[1], s[4]) if len(s) == 5 else s for s in (query, key, given.get("value", key))]
    past = given["past_key"][2] if "past_key" in given else 0
    masked = "key_padding_mask" in given or "attention_bias" in given
    _attend(op, (int(attr(op, "num_heads")),) * 3, (sizes[0], sizes[1], sizes[2]), past, masked)


@formula(f"{MICROSOFT}.GroupQueryAttention", source=PRODUCTS_ALONE % " of fewer heads of keys")
def _group_query(op: Op) -> Work:
    # query (B, S, H D) with key, value (B, L, Hk D), or (B, S, (H + 2 Hk) D); past_key, present_key (B, Hk, L, D)
    given, heads, own = _sizes(op), int(attr(op, "num_heads")), int(attr(op, "kv_num_heads"))
    batch, length, wide = given["query"]
    width = wide // (heads if "key" in given else heads + 2 * own)
    key = given.get("key", (batch, length, own * width))
    past = given["past_key"][2] if "past_key" in given else 0
    if past and (len(op.outputs) < 2 or (op.outputs[1].shape or ())[2:3] != (past + key[1],)):
        raise UnknownWork(ROOM_FOR_MORE % op.op)
    # seqlens_k says how many keys each sequence has
    _attend(op, (heads, own, own), ((batch, length, heads * width), key, key), past, masked=True)
