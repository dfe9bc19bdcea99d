"""Ops that a framework runs as one and that are more than one operation per element, and what holds their formulas."""

from __future__ import annotations

from reconcile.work import load, registered_formulas

FUSED = ("reconcile.work.aten.layers", "reconcile.work.aten.recurrent")
"""Where formulas of more than one elementary operation per element live."""

NAMES = (
    "gru", "lstm", "rnn_relu", "rnn_tanh", "mkldnn_rnn_layer", "scaled_dot_product_attention", "_native_multi_head_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_softmax", "_log_softmax", "_safe_softmax", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d",
    "_adaptive_avg_pool2d", "adaptive_max_pool2d", "upsample_bilinear2d",
)  # fmt: skip
HELD = {f"aten.{name}" for name in NAMES}
"""Fused ops that the zoo's traces have: test_recurrent, test_composites and test_layers hold their formulas to something else
than themselves, those of three axes by the formula of two."""


def fused(ops):
    """Names of the fused ops among these."""
    load()
    return {op.op for op in ops if registered_formulas()[op.op].compute.__module__ in FUSED}
