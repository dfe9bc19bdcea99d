"""Work formulas of ONNX matrix products, convolutions, pooling, normalisation, softmax, resizing and recurrent layers."""

from __future__ import annotations

from functools import partial

from ....core.records import Op
from ....core.work import MASKED, SINGLE_COMPONENTS, UnknownWork, Work, formula, prod
from ....work import attention, elementwise, normalization, pooling, sampling
from ....work.attention_masks import MASK_VALUES_UNKNOWN
from ....work.contraction import dots, einsum, scale_product
from ....work.convolution import convolution, taps_torch, transposed_convolution
from ....work.recurrent import layers
from ....work.shapes import (
    attr,
    ints,
    n_in,
    n_out,
    out_shape,
    shape,
)

_SPEC = "onnx.ai/onnx/operators"


@formula(
    "onnx.MatMul", source=f"numpy.matmul: one dot product of K terms per output element: {_SPEC}/onnx__MatMul.html"
)
def _matmul(op: Op) -> Work:
    # (..., M, K) @ (..., K, N)
    return dots(n_out(op), shape(op)[-1])


@formula(
    "onnx.MatMulInteger", source=f"as MatMul, of integers less their zero points: {_SPEC}/onnx__MatMulInteger.html"
)
def _matmul_integer(op: Op) -> Work:
    # (..., M, K) @ (..., K, N)
    return dots(n_out(op), shape(op)[-1])


@formula("onnx.ConvInteger", source=f"as Conv, of integers less their zero points: {_SPEC}/onnx__ConvInteger.html")
def _conv_integer(op: Op) -> Work:
    # x (B, C, *in), w (M, C/group, *kernel)
    return convolution(n_out(op), taps_torch(shape(op, 1)), bias=False)


@formula("onnx.Gemm", source=f"alpha * A' @ B' + beta * C: {_SPEC}/onnx__Gemm.html")
def _gemm(op: Op) -> Work:
    # A (M, K), or (K, M) if transA; C may be left out
    k = shape(op)[0 if op.attrs.get("transA", 0) else 1]
    beta = float(op.attrs.get("beta", 1.0)) if _tensor_given(op, "C", 2) else 0.0
    return dots(n_out(op), k) + scale_product(n_out(op), beta, float(op.attrs.get("alpha", 1.0)))


@formula("onnx.Einsum", source=f"contraction.einsum: {_SPEC}/onnx__Einsum.html")
def _einsum(op: Op) -> Work:
    return einsum(str(attr(op, "equation")), [shape(op, i) for i in range(len(op.inputs))])


@formula("onnx.Conv", source=f"dense convolution, convolution.py: {_SPEC}/onnx__Conv.html")
def _conv(op: Op) -> Work:
    # X (B, C, *in), W (M, C/group, *kernel), B (M,)
    return convolution(n_out(op), taps_torch(shape(op, 1)), bias=_tensor_given(op, "B", 2))


@formula("onnx.ConvTranspose", source=f"transposed convolution, convolution.py: {_SPEC}/onnx__ConvTranspose.html")
def _conv_transpose(op: Op) -> Work:
    # X (B, C, *in), W (C, M/group, *kernel), B (M,)
    return transposed_convolution(n_in(op), taps_torch(shape(op, 1)), n_out(op), bias=_tensor_given(op, "B", 2))


@formula("onnx.MaxPool", source=f"pooling.max_pool, windows clipped to the input: {_SPEC}/onnx__MaxPool.html")
def _max_pool(op: Op) -> Work:
    return pooling.max_pool(*_windows(op))


@formula("onnx.AveragePool", source=f"pooling.avg_pool, windows clipped to the input: {_SPEC}/onnx__AveragePool.html")
def _avg_pool(op: Op) -> Work:
    return pooling.avg_pool(*_windows(op))


def _windows(op: Op) -> tuple[int, int]:
    """(elements read, windows that read any) of a pool (B, C, *in) -> (B, C, *out); lists that are not given have defaults."""
    wide, small = shape(op), out_shape(op)
    taps = ints(op, "kernel_shape")
    ones = [1] * len(taps)
    strides, dilations = op.attrs.get("strides") or ones, op.attrs.get("dilations") or ones
    sides = list(zip(wide[2:], small[2:], taps, strides, dilations, strict=True))
    kind = op.attrs.get("auto_pad") or "NOTSET"
    if kind.startswith("SAME"):  # SAME_LOWER is SAME_UPPER seen in a mirror, and reads as many
        before = [pooling.same_padding(*side) // 2 for side in sides]
    else:  # pads: what comes before each axis, then what comes after each
        before = list(op.attrs.get("pads", ()) if kind == "NOTSET" else ())[: len(taps)] or [0] * len(taps)
    axes = [pooling.Axis(*side[:4], edge, side[4]) for side, edge in zip(sides, before, strict=True)]
    return pooling.clipped_reads(prod(wide[:2]), axes)


@formula("onnx.LpPool", source=f"elementwise.vector_norm of windows clipped to the input: {_SPEC}/onnx__LpPool.html")
def _lp_pool(op: Op) -> Work:
    return elementwise.vector_norm(*_windows(op), int(op.attrs.get("p", 2)))


@formula("onnx.GlobalLpPool", source=f"elementwise.vector_norm of every channel: {_SPEC}/onnx__GlobalLpPool.html")
def _global_lp_pool(op: Op) -> Work:
    return elementwise.vector_norm(n_in(op), n_out(op), int(op.attrs.get("p", 2)))


@formula("onnx.GlobalAveragePool", source=f"the mean of every channel: {_SPEC}/onnx__GlobalAveragePool.html")
def _global_avg(op: Op) -> Work:
    return normalization.mean(n_in(op), n_out(op))


@formula("onnx.GlobalMaxPool", source=f"N - O comparisons: {_SPEC}/onnx__GlobalMaxPool.html")
def _global_max(op: Op) -> Work:
    return Work(cmp=n_in(op) - n_out(op))


def _axis_rows(op: Op, default: int) -> tuple[int, int]:
    """(rows, length of a row) of a tensor along its ``axis``."""
    sizes, axis = shape(op), int(op.attrs.get("axis", default))
    n = sizes[axis] if sizes else 1
    return (prod(sizes) // n if n else 0), n


@formula("onnx.Softmax", source=f"normalization.softmax along one axis (from opset 13): {_SPEC}/onnx__Softmax.html")
def _softmax(op: Op) -> Work:
    return normalization.softmax(*_softmax_rows(op))


@formula(
    "onnx.LogSoftmax", source=f"normalization.log_softmax along one axis (from opset 13): {_SPEC}/onnx__LogSoftmax.html"
)
def _log_softmax(op: Op) -> Work:
    return normalization.log_softmax(*_softmax_rows(op))


def _softmax_rows(op: Op) -> tuple[int, int]:
    """(rows, length) of a softmax; before opset 13 all dimensions from ``axis`` on form one row."""
    if int(op.attrs.get("opset", 13)) >= 13:
        return _axis_rows(op, -1)
    sizes, axis = shape(op), int(op.attrs.get("axis", 1))
    n = prod(sizes[axis:])
    return (prod(sizes) // n if n else 0), n


@formula("onnx.Hardmax", source=f"the first maximum of each row: {_SPEC}/onnx__Hardmax.html")
def _hardmax(op: Op) -> Work:
    rows, n = _softmax_rows(op)
    return Work(cmp=rows * max(n - 1, 0))


@formula("onnx.LpNormalization", source=f"x / elementwise.vector_norm: {_SPEC}/onnx__LpNormalization.html")
def _lp_normalization(op: Op) -> Work:
    return elementwise.vector_norm(n_in(op), _axis_rows(op, -1)[0], int(op.attrs.get("p", 2))) + Work(div=n_in(op))


@formula("onnx.BatchNormalization", source=f"normalization.batch_norm_inference: {_SPEC}/onnx__BatchNormalization.html")
def _batch_norm(op: Op) -> Work:
    # X (B, C, *), scale, B, mean, var (C,)
    if op.attrs.get("training_mode", 0):
        return normalization.batch_norm_training(n_in(op), shape(op)[1], weight=True, running=True)
    return normalization.batch_norm_inference(n_in(op), shape(op)[1], weight=True)


@formula(
    "onnx.LayerNormalization", source=f"normalization.layer_norm from axis on: {_SPEC}/onnx__LayerNormalization.html"
)
def _layer_norm(op: Op) -> Work:
    n = prod(shape(op)[int(op.attrs.get("axis", -1)) :])
    return normalization.layer_norm(n_in(op) // n if n else 0, n, weight=True, bias=_tensor_given(op, "B", 2))


@formula("onnx.RMSNormalization", source=f"normalization.rms_norm from axis on: {_SPEC}/onnx__RMSNormalization.html")
def _rms_norm(op: Op) -> Work:
    n = prod(shape(op)[int(op.attrs.get("axis", -1)) :])
    return normalization.rms_norm(n_in(op) // n if n else 0, n, weight=True)


@formula("onnx.InstanceNormalization", source=f"layer_norm of every channel: {_SPEC}/onnx__InstanceNormalization.html")
def _instance_norm(op: Op) -> Work:
    rows = prod(shape(op)[:2])
    return normalization.layer_norm(rows, n_in(op) // rows if rows else 0, weight=True, bias=True)


@formula("onnx.GroupNormalization", source=f"layer_norm of every group: {_SPEC}/onnx__GroupNormalization.html")
def _group_norm(op: Op) -> Work:
    rows = shape(op)[0] * int(attr(op, "num_groups"))
    return normalization.layer_norm(rows, n_in(op) // rows if rows else 0, weight=True, bias=True)


@formula(
    "onnx.Resize",
    "onnx.Upsample",
    source=f"pooling.linear_interpolation, cubic_interpolation: {_SPEC}/onnx__Resize.html",
)
def _resize(op: Op) -> Work:
    mode = op.attrs.get("mode", "nearest")
    axes = sum(a != b for a, b in zip(shape(op), out_shape(op), strict=True))
    if mode == "nearest" or not axes:
        return Work()
    if mode == "linear":
        return pooling.linear_interpolation(n_out(op), axes)
    if mode == "cubic" and axes == 2:
        return pooling.cubic_interpolation(n_out(op))
    raise UnknownWork(f"onnx.Resize with mode {mode} along {axes} axes")


_MODES = {"nearest": sampling.NEAREST, "cubic": sampling.BICUBIC, "bicubic": sampling.BICUBIC}
_PADDING = {"border": sampling.BORDER, "reflection": sampling.REFLECTION}


@formula("onnx.GridSample", source=f"sampling.grid_sample: {_SPEC}/onnx__GridSample.html")
def _grid_sample(op: Op) -> Work:
    # X (B, C, *in), grid (B, *out, axes)
    mode, padding = (
        _MODES.get(op.attrs.get("mode", ""), sampling.BILINEAR),
        _PADDING.get(op.attrs.get("padding_mode", ""), 0),
    )
    align, places = bool(op.attrs.get("align_corners")), prod(shape(op, 1)[:-1])
    return sampling.grid_sample(places, shape(op)[1], len(shape(op)) - 2, mode, padding, align)


@formula(
    "onnx.AffineGrid", source=f"theta @ the coordinates, which have no formula here: {_SPEC}/onnx__AffineGrid.html"
)
def _affine_grid(op: Op) -> Work:
    # theta (B, axes, axes + 1), size -> (B, *size, axes)
    products = dots(n_out(op), shape(op)[-1])
    raise UnknownWork("what the coordinates of onnx.AffineGrid cost has no formula here", SINGLE_COMPONENTS, products)


@formula("onnx.DeformConv", source=f"the products of Conv; the rest has no formula here: {_SPEC}/onnx__DeformConv.html")
def _deform_conv(op: Op) -> Work:
    # X (B, C, *in), W (M, C/group, *kernel), offset, B (M,), mask
    products = convolution(n_out(op), taps_torch(shape(op, 1)), bias=False)
    raise UnknownWork("what the samples of onnx.DeformConv cost has no formula here", SINGLE_COMPONENTS, products)


@formula("onnx.Attention", source=f"attention.sdpa; / softcap, tanh, * softcap: {_SPEC}/onnx__Attention.html")
def _attention(op: Op) -> Work:
    # Q (B, Sq, Hq D), K (B, Sk, Hk D), V (B, Sk, Hk Dv), or with heads as (B, H, S, D); mask; past K, V (B, H, Sp, D)
    query, key, value = (
        (sizes[0], int(attr(op, heads)), sizes[1], sizes[2] // int(attr(op, heads))) if len(sizes) == 3 else sizes
        for sizes, heads in zip(map(partial(shape, op), range(3)), HEADS, strict=True)
    )
    mask, past = op.given("attn_mask"), 0
    if op.given("past_key"):
        past = shape(op, 3 + mask)[2]
        key, value = (*key[:2], key[2] + past, key[3]), (*value[:2], value[2] + past, value[3])
    before, after = (size if size >= 0 else None for size in (int(op.attrs.get(name, -1)) for name in WINDOW))
    if op.attrs.get("is_causal"):
        after = 0
    away = attention.outside(query[2], key[2], before, after, past)
    work = attention.sdpa(query, key, value, masked=mask or (before, after) != (None, None), away=away)
    if op.attrs.get("softcap"):
        scores = prod(query[:3]) * key[2]
        work += Work(div=scores, special=scores, mul=scores)
    if mask or op.given("nonpad_kv_seqlen"):
        raise UnknownWork(MASK_VALUES_UNKNOWN, (MASKED,), work)
    return work


HEADS = ("q_num_heads", "kv_num_heads", "kv_num_heads")
WINDOW = ("left_window_size", "right_window_size")

_DEFAULT_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


@formula(
    "onnx.LSTM", "onnx.GRU", "onnx.RNN", source=f"recurrent.py; W, R and B hold every direction: {_SPEC}/onnx__GRU.html"
)
def _recurrent(op: Op) -> Work:
    # X (T, B, I), or (B, T, I) if layout is 1; W (D, G*H, I), R (D, G*H, H), B (D, 2*G*H)
    kind = op.op.removeprefix("onnx.")
    directions, gates, hidden = shape(op, 2)
    activations = op.attrs.get("activations") or _DEFAULT_ACTIVATIONS[kind] * directions
    variant = "rnn_relu" if kind == "RNN" and activations == ["Relu"] * directions else ""
    if not variant and activations != _DEFAULT_ACTIVATIONS[kind] * directions:
        raise UnknownWork(f"{op.op} with the activations {', '.join(map(str, activations))}")
    if op.attrs.get("clip") or op.attrs.get("input_forget") or len(op.inputs) > 7:
        raise UnknownWork(f"{op.op} that clips, couples its gates or has peepholes")
    weights: list[tuple[int, ...]] = []
    for _ in range(directions):
        weights += [shape(op, 1)[1:], (gates, hidden)]
        weights += [(gates,), (gates,)] if op.given("B") and len(op.inputs) > 3 else []
    name = variant or {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}[kind]
    rows = prod(shape(op)[:2])
    # ONNX defines a GRU's new state as (1 - z) * n + z * h, one product more than recurrent.py's n + z * (h - n)
    extra = Work(mul=rows * directions * hidden) if kind == "GRU" else Work()
    return layers(name, rows, directions, weights) + extra


def _tensor_given(op: Op, name: str, position: int) -> bool:
    """Whether the optional tensor ``name`` was given, also for records that leave None arguments out.

    ``position`` is the tensor's index among the inputs if it and all before it are given.
    """
    return op.given(name) and len(op.inputs) > position
