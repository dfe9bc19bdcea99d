"""Work of ATen's forward softmax, norms, pooling, interpolation, attention, embedding bags and encoder layers.

The arithmetic is in work/normalization.py, pooling.py and attention.py. Backward operators are in gradients.py and
fused_gradients.py, but for that of flex_attention, which is here.
"""

from __future__ import annotations

from functools import partial

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, formulas, prod
from .. import attention, normalization, pooling
from ..contraction import dense, dots
from ..elementwise import ADD, CMP, SHARED, reduction
from ..shapes import attr, n_in, n_out, normalized_rows, out_shape, rows_along, shape, shapes_by_sequence, window
from .windows import adaptive_windows, windows


def _rows(op: Op) -> tuple[int, int]:
    """(rows, length) of the dimension ``dim`` of input 0; a scalar is one row of one."""
    dim = attr(op, "dim")
    if not isinstance(dim, int):
        raise UnknownWork(f"{op.op}: dim is {dim!r}; a softmax needs one dimension")
    return rows_along(op, dim)


def _masked_softmax(op: Op) -> Work:
    dim = op.attrs.get("dim")
    return normalization.softmax(*_rows(op if dim is not None else op._replace(attrs={**op.attrs, "dim": -1})))


def _group_norm(op: Op) -> Work:
    # x (B, C, *): R = B * groups rows of C/groups * spatial
    groups = attr(op, "num_groups" if op.op == "aten.group_norm" else "group")
    rows = shape(op)[0] * int(groups)
    return normalization.layer_norm(rows, n_in(op) // rows if rows else 0, op.given("weight"), op.given("bias"))


def _batch_norm_of(op: Op, channels: int, training: bool, running: bool) -> Work:
    if training:
        return normalization.batch_norm_training(n_in(op), channels, op.given("weight"), running)
    return normalization.batch_norm_inference(n_in(op), channels, op.given("weight"))


_FIXED = {
    "aten._native_batch_norm_legit_no_training": False,
    "aten._batch_norm_with_update": True,
    "aten._batch_norm_no_update": False,
}
"""Batch norms whose name says whether they train."""


def _batch_norm(op: Op) -> Work:
    # x (B, C, *); batch statistics in training, and if no running statistics are kept
    running = op.given("running_mean") and len(op.inputs) > op.given("weight") + op.given("bias") + 1
    training = _FIXED[op.op] if op.op in _FIXED else bool(attr(op, "training"))
    return _batch_norm_of(op, shape(op)[1], training or not running, running)


def _instance_norm(op: Op) -> Work:
    batch, channels = shape(op)[:2]
    training = bool(attr(op, "use_input_stats"))
    if training and op.given("running_mean"):
        raise UnknownWork("aten.instance_norm that updates running statistics in training")
    return _batch_norm_of(op, batch * channels, training, running=False)


def _adaptive(op: Op) -> tuple[int, int]:
    return adaptive_windows(op, shape(op), out_shape(op))


def _embedding_bag(op: Op) -> Work:
    # words (V, D), indices (L,), offsets -> (bags, D); sum: add (L - bags) D; mean: div bags D more; max: cmp instead
    rows, width, out, mode = n_in(op, 1), shape(op)[-1], n_out(op), attr(op, "mode")
    step = reduction(rows * width, out, CMP if mode == 2 else ADD)
    weighted = op.attrs.get("per_sample_weights", 0) is not None
    return step + Work(div=out if mode == 1 else 0, mul=rows * width if weighted else 0)


def _sdpa(op: Op) -> Work:
    # query, key, value[, mask]
    if op.attrs.get("dropout_mask") is not None or len(op.inputs) > 4:
        raise UnknownWork(f"{op.op} with a given dropout mask")
    causal = bool(op.attrs.get("is_causal"))
    given = partial(attention.sdpa, masked=causal or len(op.inputs) > 3, dropout=bool(op.attrs.get("dropout_p")))
    calls = shapes_by_sequence(op)
    away = [attention.count_discarded(query[-2], key[-2]) if causal else 0 for query, key, _ in calls]
    return sum((given(*each, away=masked) for each, masked in zip(calls, away, strict=True)), Work())


def _shapes(op: Op) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The shapes of query, key and value, the first inputs."""
    return shape(op, 0), shape(op, 1), shape(op, 2)


def _without_score_mod(op: Op, work: Work) -> Work:
    if op.attrs["score_mod"] != "identity":
        reason = (
            "flex_attention changes its scores, one by one, with the model's own score_mod, whose work is not recorded"
        )
        raise UnknownWork(reason, SINGLE_COMPONENTS, Work(mac=work.mac, accumulators=work.accumulators))
    return work


def _of_sequences(op: Op, heads: int) -> Work:
    if op.attrs.get("need_weights") and op.op == "aten._native_multi_head_attention":
        raise UnknownWork(f"{op.op} of nested tensors with its weights")
    return attention.multi_head_of_sequences(op.attrs["rows"], int(attr(op, "embed_dim")), heads)


def _multi_head(op: Op) -> Work:
    # query, key, value, qkv_weight, qkv_bias, proj_weight, proj_bias[, mask]
    heads = int(attr(op, "num_head"))
    if op.attrs.get("rows") is not None:  # a nested tensor: how long each sequence is
        shape(op)
        return _of_sequences(op, heads)
    weights = (bool(op.attrs.get(name, True)) for name in ("need_weights", "average_attn_weights"))
    return attention.multi_head(*_shapes(op), heads, int(attr(op, "embed_dim")), *weights)


def _encoder_layer(op: Op) -> Work:
    # src (B, T, E), qkv_weight, qkv_bias, proj_weight, proj_bias, norm_weight_1, norm_bias_1, norm_weight_2,
    # norm_bias_2, ffn_weight_1 (F, E), ffn_bias_1, ffn_weight_2, ffn_bias_2[, mask]
    src, hidden, embed, heads = shape(op), shape(op, 9)[0], int(attr(op, "embed_dim")), int(attr(op, "num_heads"))
    rows = prod(src[:-1])
    activation = SHARED["gelu" if attr(op, "use_gelu") else "compare"][0]
    if op.attrs.get("rows") is None:
        attending = attention.multi_head(src, src, src, heads, embed, need_weights=False, average=False)
    else:
        attending = _of_sequences(op, heads)
    return (
        attending
        + 2 * normalization.layer_norm(rows, embed, weight=True, bias=True)
        + Work(add=2 * rows * embed)  # the two residual connections
        + dense(rows, embed, hidden, bias=True)
        + activation * (rows * hidden)
        + dense(rows, hidden, embed, bias=True)
    )


formulas({
    "softmax _softmax": (
        "normalization.softmax: ATen native/cpu/SoftMaxKernel.cpp", lambda op: normalization.softmax(*_rows(op))
    ),
    "_safe_softmax": (
        "normalization.safe_softmax: ATen native/transformers/attention.cpp",
        lambda op: normalization.safe_softmax(*_rows(op)),
    ),
    "_masked_softmax": ("normalization.softmax, dense: ATen native/cpu/SoftMaxKernel.cpp", _masked_softmax),
    "log_softmax _log_softmax": (
        "normalization.log_softmax, x - max computed twice: ATen native/cpu/SoftMaxKernel.cpp (LogSoftmaxKernelImpl.h)",
        lambda op: normalization.log_softmax(*_rows(op)) + ADD * n_in(op),
    ),
    "layer_norm native_layer_norm": (
        "normalization.layer_norm: ATen native/layer_norm.cpp",
        lambda op: normalization.layer_norm(*normalized_rows(op), op.given("weight"), op.given("bias")),
    ),
    "rms_norm _fused_rms_norm": (
        "normalization.rms_norm: ATen native/layer_norm.cpp (rms_norm)",
        lambda op: normalization.rms_norm(*normalized_rows(op), op.given("weight")),
    ),
    "group_norm native_group_norm": (
        "normalization.layer_norm over groups: ATen native/group_norm.cpp", _group_norm
    ),
    """batch_norm native_batch_norm _native_batch_norm_legit cudnn_batch_norm miopen_batch_norm _batch_norm_impl_index
    _native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_no_update""": (
        "normalization.batch_norm_inference, _training: ATen native/Normalization.cpp, cpu/batch_norm_kernel.cpp",
        _batch_norm,
    ),
    "instance_norm": (
        "composite, ATen native/Normalization.cpp: batch norm of x reshaped to (1, B*C, *)", _instance_norm
    ),
    """max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
    quantized_max_pool2d mkldnn_max_pool2d""": (
        "pooling.max_pool, windows clipped to the input: ATen native/cpu/MaxPoolKernel.cpp",
        lambda op: pooling.max_pool(*windows(op, shape(op), out_shape(op))),
    ),
    "avg_pool1d avg_pool2d avg_pool3d": (
        "pooling.avg_pool, windows clipped to the input: ATen native/cpu/AvgPoolKernel.cpp",
        lambda op: pooling.avg_pool(*windows(op, shape(op), out_shape(op))),
    ),
    "adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool3d": (
        "pooling.adaptive_reads: ATen native/AdaptivePooling.h",
        lambda op: pooling.avg_pool(*_adaptive(op)),
    ),
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d": (
        "pooling.adaptive_reads: ATen native/AdaptivePooling.h",
        lambda op: pooling.max_pool(*_adaptive(op)),
    ),
    "fractional_max_pool2d fractional_max_pool3d": (
        "pooling.max_pool, windows at random places: ATen native/FractionalMaxPool2d.cpp",
        lambda op: pooling.max_pool(n_out(op) * window(op, len(shape(op)) - 2), n_out(op)),
    ),
    "upsample_linear1d upsample_bilinear2d upsample_trilinear3d": (
        "pooling.linear_interpolation: ATen native/cpu/UpSampleKernel.cpp",
        lambda op: pooling.linear_interpolation(n_out(op), len(shape(op)) - 2),
    ),
    "upsample_bicubic2d": (
        "pooling.cubic_interpolation: ATen native/cpu/UpSampleKernel.cpp",
        lambda op: pooling.cubic_interpolation(n_out(op)),
    ),
    "affine_grid_generator": (  # theta (B, axes, axes + 1) -> (B, *positions, axes)
        "base points @ theta^T: ATen native/AffineGridGenerator.cpp", lambda op: dots(n_out(op), shape(op)[-1])
    ),
    "_embedding_bag _embedding_bag_forward_only": (
        "a reduction per bag, each of at least one row: ATen native/EmbeddingBag.cpp", _embedding_bag
    ),
    """scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention
    _scaled_dot_product_fused_attention_overrideable""": (
        "attention.sdpa, ATen's math decomposition for every backend: native/transformers/attention.cpp", _sdpa
    ),
    "_native_multi_head_attention": ("attention.multi_head: ATen native/transformers/attention.cpp", _multi_head),
    "_transformer_encoder_layer_fwd": (
        "ATen native/transformers/transformer.cpp: attention, residuals, layer norms, feed-forward", _encoder_layer
    ),
}, "aten.")  # fmt: skip
formulas({
    "flex_attention": (
        "attention.flex: torch/_higher_order_ops/flex_attention.py",
        lambda op: _without_score_mod(op, attention.flex(*_shapes(op))),
    ),
    "flex_attention_backward": (
        "attention.flex_gradient: torch/_higher_order_ops/flex_attention.py",
        lambda op: _without_score_mod(op, attention.flex_gradient(*_shapes(op))),
    ),
}, "higher_order.")  # fmt: skip
