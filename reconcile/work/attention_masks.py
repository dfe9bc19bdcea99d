"""Attention masks whose values a trace lacks: ``--convention causal`` takes the op as unknown, or counts all its products."""

from __future__ import annotations

from ..core.records import Op, Shape, Tensor
from . import formula_of, ops_inside

MASK_VALUES_UNKNOWN = (
    "a mask whose values are not known: the trace has its shape only, so the products that it discards are unknown. Call "
    "attention with is_causal=True instead of the mask, or choose the convention matmul"
)
MASK_BLOCKS_UNKNOWN = (
    "a block mask whose positions are not known, so the products that it discards are unknown; choose the convention "
    "matmul"
)

_MASKS = {
    f"aten.{name}": mask
    for mask, names in {
        "attn_mask": """scaled_dot_product_attention scaled_dot_product_attention_backward _scaled_dot_product_attention_math
        _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward""",
        "attn_bias": """_scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
        _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
        _scaled_dot_product_fused_attention_overrideable _cudnn_attention_forward _cudnn_attention_backward""",
        "bias": "_efficient_attention_forward _efficient_attention_backward",
        "mask": "_native_multi_head_attention _transformer_encoder_layer_fwd",
    }.items()
    for name in names.split()
}
"""The argument of each fused attention that is its mask."""
_BLOCKED = ("higher_order.flex_attention", "higher_order.flex_attention_backward")
_PAIRS = (
    *("bmm", "baddbmm", "addbmm", "matmul", "einsum"),
    *("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "XlaEinsum", "MatMul"),
)


def unknown_mask(op: Op) -> str:
    """Why the products that a mask discards are unknown; '' if it has no mask, or one that the trace shows."""
    if op.op in _BLOCKED:
        return MASK_BLOCKS_UNKNOWN if op.attrs.get("block_mask", True) else ""
    mask = _MASKS.get(op.op)
    if formula_of(op.op) is None:
        return next(filter(None, map(unknown_mask, ops_inside(op))), "")
    return MASK_VALUES_UNKNOWN if mask is not None and op.given(mask) else ""


def is_taken_whole(op: str, inputs: tuple[Tensor, ...]) -> bool:
    """Whether an op multiplies two stacks of matrices: if it is a product of attention, nothing in the trace shows its mask."""
    name = op.rpartition(".")[2]
    return name in _PAIRS and formula_of(op) is not None and len([t for t in inputs if _is_stacked(t.shape)]) > 1


def _is_stacked(shape: Shape) -> bool:
    return shape is not None and len(shape) > 2
