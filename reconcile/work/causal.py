"""Attention masks whose values a trace lacks: ``--convention causal`` takes the op as unknown, or counts all its products."""

from __future__ import annotations

from ..core.records import Op, Shape, Tensor
from . import formula_of

MASK_VALUES_UNKNOWN = (
    "a mask whose values are not known: the trace has its shape only, so the products that it discards are unknown. Call "
    "attention with is_causal=True instead of the mask, or choose the convention matmul"
)
MASK_BLOCKS_UNKNOWN = (
    "a block mask whose positions are not known, so the products that it discards are unknown; choose the convention "
    "matmul"
)

_MASKS = {
    "aten.scaled_dot_product_attention": "attn_mask",
    "aten.scaled_dot_product_attention_backward": "attn_mask",
    "aten._scaled_dot_product_attention_math": "attn_mask",
    "aten._scaled_dot_product_flash_attention_for_cpu": "attn_mask",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward": "attn_mask",
    "aten._scaled_dot_product_efficient_attention": "attn_bias",
    "aten._scaled_dot_product_efficient_attention_backward": "attn_bias",
    "aten._scaled_dot_product_cudnn_attention": "attn_bias",
    "aten._scaled_dot_product_cudnn_attention_backward": "attn_bias",
    "aten._scaled_dot_product_fused_attention_overrideable": "attn_bias",
    "aten._efficient_attention_forward": "bias",
    "aten._efficient_attention_backward": "bias",
    "aten._cudnn_attention_forward": "attn_bias",
    "aten._cudnn_attention_backward": "attn_bias",
    "aten._native_multi_head_attention": "mask",
    "aten._transformer_encoder_layer_fwd": "mask",
}
"""The argument of each fused attention that is its mask."""
_BLOCKED = ("higher_order.flex_attention", "higher_order.flex_attention_backward")
_PAIRS = (
    "bmm",
    "baddbmm",
    "addbmm",
    "matmul",
    "einsum",
    "BatchMatMul",
    "BatchMatMulV2",
    "BatchMatMulV3",
    "Einsum",
    "XlaEinsum",
    "MatMul",
)


def unknown_mask(op: Op) -> str:
    """Why the products that a mask discards are unknown; '' if it has no mask, or one that the trace shows."""
    if op.op in _BLOCKED:
        return MASK_BLOCKS_UNKNOWN if op.attrs.get("block_mask", True) else ""
    mask = _MASKS.get(op.op)
    return MASK_VALUES_UNKNOWN if mask is not None and op.given(mask) else ""


def is_taken_whole(op: str, inputs: tuple[Tensor, ...]) -> bool:
    """Whether an op multiplies two stacks of matrices: if it is a product of attention, nothing in the trace shows its mask."""
    name = op.rpartition(".")[2]
    return name in _PAIRS and formula_of(op) is not None and len([t for t in inputs if _is_stacked(t.shape)]) > 1


def _is_stacked(shape: Shape) -> bool:
    return shape is not None and len(shape) > 2
