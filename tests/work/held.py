"""Ops that a framework runs as one and that are more than one operation per element, and what holds their formulas."""

from __future__ import annotations

from reconcile.work import load, registered_formulas

FUSED = ("reconcile.work.aten.layers", "reconcile.work.aten.recurrent")
"""Where formulas of more than one elementary operation per element live."""

HELD = {
    "aten.gru": "test_fused_of_the_zoo, test_recurrent",
    "aten.lstm": "test_fused_of_the_zoo, test_recurrent",
    "aten.rnn_relu": "test_fused_of_the_zoo, test_recurrent",
    "aten.rnn_tanh": "test_fused_of_the_zoo, test_recurrent",
    "aten.mkldnn_rnn_layer": "test_recurrent",
    "aten.scaled_dot_product_attention": "test_fused_of_the_zoo, test_composites",
    "aten._scaled_dot_product_flash_attention_for_cpu": "test_composites",
    "aten._native_multi_head_attention": "test_fused_of_the_zoo, test_composites",
    "aten._softmax": "test_layers",
    "aten._log_softmax": "test_layers",
    "aten._safe_softmax": "test_composites, in attention",
    "aten.native_layer_norm": "test_layers",
    "aten.native_group_norm": "test_layers",
    "aten.native_batch_norm": "test_layers",
    "aten.max_pool2d_with_indices": "test_layers",
    "aten.max_pool3d_with_indices": "test_layers, by the formula of two axes",
    "aten.avg_pool2d": "test_layers",
    "aten.avg_pool3d": "test_layers, by the formula of two axes",
    "aten._adaptive_avg_pool2d": "test_layers",
    "aten.adaptive_max_pool2d": "test_layers",
    "aten.upsample_bilinear2d": "test_layers",
}
"""Fused ops that the zoo's traces have, and which tests hold their formula to something else than itself."""


def fused(ops):
    """Names of the fused ops among these."""
    load()
    return {op.op for op in ops if registered_formulas()[op.op].compute.__module__ in FUSED}
