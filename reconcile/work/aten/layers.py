"""Formulas of ATen softmax, normalisations, pooling, interpolation and attention."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...core.records import Op
from ...core.work import SINGLE, UnknownWork, Work, formula, prod
from .. import attention, normalization, pooling
from ..contraction import dense, dots
from ..elementwise import ADD, CMP, SHARED, reduction
from ..shapes import attr, ints, n_in, n_out, out_shape, shape


def _rows(op: Op) -> tuple[int, int]:
    """(rows, length) of the dimension ``dim`` of input 0; a scalar is one row of one."""
    sizes, dim = shape(op), attr(op, "dim")
    if not isinstance(dim, int):
        raise UnknownWork(f"{op.op}: dim is {dim!r}; a softmax needs one dimension")
    n = sizes[dim] if sizes else 1
    return (prod(sizes) // n if n else 0), n


@formula("aten.softmax", "aten._softmax", source="normalization.softmax: ATen native/cpu/SoftMaxKernel.cpp")
def _softmax(op: Op) -> Work:
    return normalization.softmax(*_rows(op))


@formula("aten._safe_softmax", source="normalization.safe_softmax: ATen native/transformers/attention.cpp")
def _safe_softmax(op: Op) -> Work:
    return normalization.safe_softmax(*_rows(op))


@formula("aten._masked_softmax", source="normalization.softmax, dense: ATen native/cpu/SoftMaxKernel.cpp")
def _masked_softmax(op: Op) -> Work:
    dim = op.attrs.get("dim")
    return normalization.softmax(*_rows(op if dim is not None else op._replace(attrs={**op.attrs, "dim": -1})))


@formula("aten.log_softmax", "aten._log_softmax", source="normalization.log_softmax: ATen native/cpu/SoftMaxKernel.cpp")
def _log_softmax(op: Op) -> Work:
    return normalization.log_softmax(*_rows(op))


@formula("aten.layer_norm", "aten.native_layer_norm", source="normalization.layer_norm: ATen native/layer_norm.cpp")
def _layer_norm(op: Op) -> Work:
    n = prod(ints(op, "normalized_shape"))
    return normalization.layer_norm(n_in(op) // n if n else 0, n, op.given("weight"), op.given("bias"))


@formula(
    "aten.rms_norm", "aten._fused_rms_norm", source="normalization.rms_norm: ATen native/layer_norm.cpp (rms_norm)"
)
def _rms_norm(op: Op) -> Work:
    n = prod(ints(op, "normalized_shape"))
    return normalization.rms_norm(n_in(op) // n if n else 0, n, op.given("weight"))


@formula(
    "aten.group_norm",
    "aten.native_group_norm",
    source="normalization.layer_norm over groups: ATen native/group_norm.cpp",
)
def _group_norm(op: Op) -> Work:
    # x (B, C, *): R = B * groups rows of C/groups * spatial
    groups = attr(op, "num_groups" if op.op == "aten.group_norm" else "group")
    rows = shape(op)[0] * int(groups)
    return normalization.layer_norm(rows, n_in(op) // rows if rows else 0, op.given("weight"), op.given("bias"))


def _batch_norm_of(op: Op, channels: int, training: bool, running: bool) -> Work:
    if training:
        return normalization.batch_norm_training(n_in(op), channels, op.given("weight"), running)
    return normalization.batch_norm_inference(n_in(op), channels, op.given("weight"))


_BATCH_NORMS = """batch_norm native_batch_norm _native_batch_norm_legit cudnn_batch_norm miopen_batch_norm _batch_norm_impl_index
_native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_no_update"""


@formula(
    *map("aten.{}".format, _BATCH_NORMS.split()),
    source="normalization.batch_norm_inference, _training: ATen native/Normalization.cpp, cpu/batch_norm_kernel.cpp",
)
def _batch_norm(op: Op) -> Work:
    # x (B, C, *); batch statistics in training, and if no running statistics are kept
    running = op.given("running_mean") and len(op.inputs) > op.given("weight") + op.given("bias") + 1
    fixed = {
        "aten._native_batch_norm_legit_no_training": False,
        "aten._batch_norm_with_update": True,
        "aten._batch_norm_no_update": False,
    }
    training = fixed[op.op] if op.op in fixed else bool(attr(op, "training"))
    return _batch_norm_of(op, shape(op)[1], training or not running, running)


@formula(
    "aten.instance_norm", source="composite, ATen native/Normalization.cpp: batch norm of x reshaped to (1, B*C, *)"
)
def _instance_norm(op: Op) -> Work:
    batch, channels = shape(op)[:2]
    training = bool(attr(op, "use_input_stats"))
    if training and op.given("running_mean"):
        raise UnknownWork("aten.instance_norm that updates running statistics in training")
    return _batch_norm_of(op, batch * channels, training, running=False)


def _window(op: Op, axes: int) -> int:
    kernel = ints(op, "kernel_size")
    return prod(kernel * axes if len(kernel) == 1 else kernel)


for _axes in (1, 2, 3):

    @formula(
        f"aten.max_pool{_axes}d",
        f"aten.max_pool{_axes}d_with_indices",
        *(("aten.quantized_max_pool2d", "aten.mkldnn_max_pool2d") if _axes == 2 else ()),
        source="pooling.max_pool: ATen native/cpu/MaxPoolKernel.cpp",
    )
    def _max_pool(op: Op, axes: int = _axes) -> Work:
        return pooling.max_pool(n_out(op), _window(op, axes))

    @formula(f"aten.avg_pool{_axes}d", source="pooling.avg_pool: ATen native/cpu/AvgPoolKernel.cpp")
    def _avg_pool(op: Op, axes: int = _axes) -> Work:
        return pooling.avg_pool(n_out(op), _window(op, axes))

    @formula(
        f"aten.adaptive_avg_pool{_axes}d",
        *((f"aten._adaptive_avg_pool{_axes}d",) if _axes > 1 else ()),
        source="pooling.adaptive_reads: ATen native/AdaptivePooling.h",
    )
    def _adaptive_avg(op: Op, axes: int = _axes) -> Work:
        return pooling.adaptive_avg(_reads(op, axes), n_out(op))

    @formula(f"aten.adaptive_max_pool{_axes}d", source="pooling.adaptive_reads: ATen native/AdaptivePooling.h")
    def _adaptive_max(op: Op, axes: int = _axes) -> Work:
        return pooling.adaptive_max(_reads(op, axes), n_out(op))


def _reads(op: Op, axes: int) -> int:
    return pooling.adaptive_reads(prod(shape(op)[:-axes]), shape(op)[-axes:], out_shape(op)[-axes:])


@formula(
    "aten.upsample_linear1d",
    "aten.upsample_bilinear2d",
    "aten.upsample_trilinear3d",
    source="pooling.linear_interpolation: ATen native/cpu/UpSampleKernel.cpp",
)
def _upsample(op: Op) -> Work:
    return pooling.linear_interpolation(n_out(op), len(shape(op)) - 2)


@formula(
    *("aten.fractional_max_pool2d", "aten.fractional_max_pool3d"),
    source="pooling.max_pool, windows at random places: ATen native/FractionalMaxPool2d.cpp",
)
def _fractional(op: Op) -> Work:
    return pooling.max_pool(n_out(op), _window(op, len(shape(op)) - 2))


@formula("aten.affine_grid_generator", source="base points @ theta^T: ATen native/AffineGridGenerator.cpp")
def _affine_grid(op: Op) -> Work:
    # theta (B, axes, axes + 1) -> (B, *positions, axes)
    return dots(n_out(op), shape(op)[-1])


@formula(
    "aten._embedding_bag",
    "aten._embedding_bag_forward_only",
    source="a reduction per bag, each of at least one row: ATen native/EmbeddingBag.cpp",
)
def _embedding_bag(op: Op) -> Work:
    # words (V, D), indices (L,), offsets -> (bags, D); sum: add (L - bags) D; mean: div bags D more; max: cmp instead
    rows, width, out, mode = n_in(op, 1), shape(op)[-1], n_out(op), attr(op, "mode")
    step = reduction(rows * width, out, CMP if mode == 2 else ADD)
    weighted = op.attrs.get("per_sample_weights", 0) is not None
    return step + Work(div=out if mode == 1 else 0, mul=rows * width if weighted else 0)


@formula("aten.upsample_bicubic2d", source="pooling.cubic_interpolation: ATen native/cpu/UpSampleKernel.cpp")
def _bicubic(op: Op) -> Work:
    return pooling.cubic_interpolation(n_out(op))


_ATTENTION = """attention_math flash_attention flash_attention_for_cpu efficient_attention cudnn_attention
fused_attention_overrideable"""


@formula(
    "aten.scaled_dot_product_attention",
    *map("aten._scaled_dot_product_{}".format, _ATTENTION.split()),
    source="attention.sdpa, ATen's math decomposition for every backend: native/transformers/attention.cpp",
)
def _sdpa(op: Op) -> Work:
    # query, key, value[, mask]
    if op.attrs.get("dropout_mask") is not None or len(op.inputs) > 4:
        raise UnknownWork(f"{op.op} with a given dropout mask")
    causal = bool(op.attrs.get("is_causal"))
    given = partial(attention.sdpa, masked=causal or len(op.inputs) > 3, dropout=bool(op.attrs.get("dropout_p")))
    nested = op.attrs.get("rows") is not None  # the shapes of query, key and value, sequence by sequence
    calls = list(_sequences(op)) if nested else [(shape(op, 0), shape(op, 1), shape(op, 2))]
    away = [attention.count_discarded(query[-2], key[-2]) if causal else 0 for query, key, _ in calls]
    return sum((given(*each, away=masked) for each, masked in zip(calls, away, strict=True)), Work())


def _sequences(op: Op) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Query, key and value of each sequence of nested tensors."""
    for query, key, value in zip(*op.attrs["rows"], strict=True):
        yield tuple(query), tuple(key), tuple(value)


@formula("higher_order.flex_attention", source="attention.flex: torch/_higher_order_ops/flex_attention.py")
def _flex(op: Op) -> Work:
    return _without_score_mod(op, attention.flex(shape(op, 0), shape(op, 1), shape(op, 2)))


@formula(
    "higher_order.flex_attention_backward", source="attention.flex_gradient: torch/_higher_order_ops/flex_attention.py"
)
def _flex_backward(op: Op) -> Work:
    return _without_score_mod(op, attention.flex_gradient(shape(op, 0), shape(op, 1), shape(op, 2)))


def _without_score_mod(op: Op, work: Work) -> Work:
    if op.attrs["score_mod"] != "identity":
        reason = (
            "flex_attention changes its scores, one by one, with the model's own score_mod, whose work is not recorded"
        )
        raise UnknownWork(reason, SINGLE, Work(mac=work.mac, accumulators=work.accumulators))
    return work


def _of_sequences(op: Op, heads: int) -> Work:
    if op.attrs.get("need_weights") and op.op == "aten._native_multi_head_attention":
        raise UnknownWork(f"{op.op} of nested tensors with its weights")
    return attention.multi_head_of_sequences(op.attrs["rows"], int(attr(op, "embed_dim")), heads)


@formula("aten._native_multi_head_attention", source="attention.multi_head: ATen native/transformers/attention.cpp")
def _multi_head(op: Op) -> Work:
    # query, key, value, qkv_weight, qkv_bias, proj_weight, proj_bias[, mask]
    if op.attrs.get("rows") is not None:  # a nested tensor: how long each sequence is
        shape(op)
        return _of_sequences(op, int(attr(op, "num_head")))
    return attention.multi_head(
        shape(op, 0),
        shape(op, 1),
        shape(op, 2),
        int(attr(op, "num_head")),
        int(attr(op, "embed_dim")),
        bool(op.attrs.get("need_weights", True)),
        bool(op.attrs.get("average_attn_weights", True)),
    )


@formula(
    "aten._transformer_encoder_layer_fwd",
    source="ATen native/transformers/transformer.cpp: attention, residuals, layer norms, feed-forward",
)
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
