"""Formulas of TensorFlow convolutions, pooling and normalisation, forward and backward, and of softmax and resizing."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import UnknownWork, Work, formulas, prod
from .. import gradients, normalization, pooling
from ..convolution import convolution, filter_gradient, taps_tf, transposed_convolution
from ..shapes import attr, ints, n_in, n_out, out_shape, rows_along, shape

_CONV = "dense convolution, convolution.py: TensorFlow core/kernels/conv_ops.cc, conv_ops_3d.cc"
Sizes = tuple[int, ...]


def _pool_windows(op: Op, wide: Sizes, small: Sizes, taps: Sizes = (), rates: Sizes = ()) -> tuple[int, int]:
    """(elements read, windows that read any) of a pool from ``wide`` to ``small``, forward or backward, clipped to the input.

    All lists have a number for each dimension, batch and channels included, in the order of ``data_format``: ksize unless
    ``taps`` is given, strides, rates (1 unless given), and two of explicit_paddings.
    """
    taps, strides = taps or ints(op, "ksize"), ints(op, "strides")
    rates = rates or (1,) * len(taps)
    if not len(wide) == len(small) == len(taps) == len(strides) == len(rates):
        raise UnknownWork(f"{op.op} of {list(wide)} with windows of {list(taps)}")
    sides = list(zip(wide, small, taps, strides, rates, strict=True))
    padding = attr(op, "padding")
    if padding == "EXPLICIT":
        before = ints(op, "explicit_paddings")[::2]
    elif padding == "SAME":
        before = tuple(pooling.same_padding(*side) // 2 for side in sides)
    elif padding == "VALID":
        before = (0,) * len(sides)
    else:
        raise UnknownWork(f"{op.op} with the padding {padding}")
    return pooling.clipped_reads(
        1, [pooling.Axis(*side[:4], edge, side[4]) for side, edge in zip(sides, before, strict=True)]
    )


def _dilation(op: Op) -> Work:
    # input (B, H, W, C), filter (kh, kw, C)
    reads, outputs = _pool_windows(op, shape(op), out_shape(op), (1, *shape(op, 1)[:2], 1), ints(op, "rates"))
    return Work(add=reads) + pooling.max_pool(reads, outputs)


def _sought_again(op: Op) -> Work:
    # orig_input, orig_output, grad
    return pooling.max_pool(*_pool_windows(op, shape(op), shape(op, 1))) + Work(add=n_in(op, 1))


def _avg_pool_grad(op: Op) -> Work:
    # orig_input_shape (rank,), grad
    return gradients.avg_pool(n_in(op, 1), _pool_windows(op, out_shape(op), shape(op, 1))[0])


def _batch_norm(op: Op) -> Work:
    # x, scale (C,), offset (C,), mean, variance; running statistics only if exponential_avg_factor is not 1
    channels = shape(op, 1)[0]
    if not attr(op, "is_training"):
        return normalization.batch_norm_inference(n_in(op), channels, weight=True)
    return normalization.batch_norm_training(
        n_in(op), channels, weight=True, running=attr(op, "exponential_avg_factor", 1.0) != 1.0
    )


def _batch_norm_grad(op: Op) -> Work:
    # dy, x, scale (C,), mean or batch mean, variance or 1 / its root, ...
    known = normalization.batch_norm_training_gradient
    if not attr(op, "is_training"):
        known = normalization.batch_norm_inference_gradient
    return known(n_in(op), shape(op, 2)[0])


formulas({
    "Conv Conv2D Conv3D": (  # x (B, *in, Cin) or (B, Cin, *in), filter (*k, Cin/g, Cout); a bias is an op of its own
        _CONV, lambda op: convolution(n_out(op), taps_tf(shape(op, 1)), bias=False)
    ),
    "DepthwiseConv2dNative": (  # filter (kh, kw, Cin, multiplier): each output reads kh * kw values of one channel
        "core/kernels/depthwise_conv_op.cc", lambda op: convolution(n_out(op), prod(shape(op, 1)[:2]), bias=False)
    ),
    # (input_sizes or input), filter (*k, Cin/g, Cout), out_backprop (B, *small, Cout):
    # each element scatters prod(k) * Cin/g products
    "Conv2DBackpropInput Conv2DBackpropInputV2 Conv3DBackpropInput Conv3DBackpropInputV2": (
        "transposed convolution, convolution.py: core/kernels/conv_grad_input_ops.cc",
        lambda op: transposed_convolution(n_in(op, 2), taps_tf(shape(op, 1)), n_out(op), bias=False),
    ),
    "Conv2DBackpropFilter Conv3DBackpropFilter Conv3DBackpropFilterV2": (
        # input, filter_sizes, out_backprop -> (*k, Cin/g, Cout)
        "core/kernels/conv_grad_filter_ops.cc",
        lambda op: filter_gradient(n_in(op, 2), taps_tf(out_shape(op)), n_out(op)),
    ),
    "DepthwiseConv2dNativeBackpropInput": (  # each out_backprop element scatters kh * kw products
        "core/kernels/depthwise_conv_grad_op.cc",
        lambda op: transposed_convolution(n_in(op, 2), prod(shape(op, 1)[:2]), n_out(op), bias=False),
    ),
    "DepthwiseConv2dNativeBackpropFilter": (
        "core/kernels/depthwise_conv_grad_op.cc",
        lambda op: filter_gradient(n_in(op, 2), prod(out_shape(op)[:2]), n_out(op)),
    ),
    "Dilation2D": ("max over the window of x + w: core/kernels/dilation_ops.cc", _dilation),
    "MaxPool MaxPool3D MaxPoolWithArgmax": (
        "pooling.max_pool, windows clipped to the input: core/kernels/pooling_ops_common.h, maxpooling_op.cc, "
        "pooling_ops_3d.cc",
        lambda op: pooling.max_pool(*_pool_windows(op, shape(op), out_shape(op))),
    ),
    "AvgPool AvgPool3D": (
        "pooling.avg_pool, windows clipped to the input: core/kernels/avgpooling_op.cc, eigen_pooling.h",
        lambda op: pooling.avg_pool(*_pool_windows(op, shape(op), out_shape(op))),
    ),
    "AvgPoolGrad AvgPool3DGrad": (
        "gradients.avg_pool, windows clipped to the input: core/kernels/avgpooling_op.cc, pooling_ops_3d.cc", _avg_pool_grad
    ),
    "MaxPoolGrad MaxPool3DGrad": (
        "the maximum sought again, grad added where it was: core/kernels/maxpooling_op.cc, pooling_ops_3d.cc", _sought_again
    ),
    "Softmax": (
        "normalization.softmax: core/kernels/softmax_op_functor.h", lambda op: normalization.softmax(*rows_along(op, -1))
    ),
    "LogSoftmax": (
        "normalization.log_softmax: core/kernels/softmax_op_functor.h",
        lambda op: normalization.log_softmax(*rows_along(op, -1)),
    ),
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3": (
        "normalization.batch_norm_inference, _training: core/kernels/fused_batch_norm_op.cc", _batch_norm
    ),
    "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3": (
        "normalization.batch_norm_inference_gradient, _training_gradient: core/kernels/fused_batch_norm_op.cc",
        _batch_norm_grad,
    ),
    "ResizeBilinear": (
        "pooling.lerp_bilinear: core/kernels/image/resize_bilinear_op.cc", lambda op: pooling.lerp_bilinear(n_out(op))
    ),
})  # fmt: skip
