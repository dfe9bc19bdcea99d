"""TensorFlow convolutions, pooling, normalisation, softmax and resizing."""

from __future__ import annotations

from ..core.records import Op
from ..core.work import Work, formula, prod
from . import normalization, pooling
from .convolution import convolution, filter_gradient, taps_tf, transposed
from .shapes import attr, ints, n_in, n_out, out_shape, shape

_CONV = "dense convolution, convolution.py: TensorFlow core/kernels/conv_ops.cc, conv_ops_3d.cc"


@formula("Conv", "Conv2D", "Conv3D", source=_CONV)
def _conv(op: Op) -> Work:
    # x (B, *in, Cin) or (B, Cin, *in), filter (*k, Cin/g, Cout); a bias is an op of its own
    return convolution(n_out(op), taps_tf(shape(op, 1)), bias=False)


@formula("DepthwiseConv2dNative", source="core/kernels/depthwise_conv_op.cc")
def _depthwise(op: Op) -> Work:
    # filter (kh, kw, Cin, multiplier): each output element reads kh * kw values of one channel
    return convolution(n_out(op), prod(shape(op, 1)[:2]), bias=False)


@formula(
    *("Conv2DBackpropInput", "Conv2DBackpropInputV2", "Conv3DBackpropInput", "Conv3DBackpropInputV2"),
    source="transposed convolution, convolution.py: core/kernels/conv_grad_input_ops.cc",
)
def _conv_input(op: Op) -> Work:
    # (input_sizes or input), filter (*k, Cin/g, Cout), out_backprop (B, *small, Cout):
    # each element scatters prod(k) * Cin/g products
    return transposed(n_in(op, 2), taps_tf(shape(op, 1)), n_out(op), bias=False)


@formula(
    "Conv2DBackpropFilter",
    "Conv3DBackpropFilter",
    "Conv3DBackpropFilterV2",
    source="core/kernels/conv_grad_filter_ops.cc",
)
def _conv_filter(op: Op) -> Work:
    # input, filter_sizes, out_backprop -> (*k, Cin/g, Cout)
    return filter_gradient(n_in(op, 2), taps_tf(out_shape(op)), n_out(op))


@formula("DepthwiseConv2dNativeBackpropInput", source="core/kernels/depthwise_conv_grad_op.cc")
def _depthwise_input(op: Op) -> Work:
    # each out_backprop element scatters kh * kw products
    return transposed(n_in(op, 2), prod(shape(op, 1)[:2]), n_out(op), bias=False)


@formula("DepthwiseConv2dNativeBackpropFilter", source="core/kernels/depthwise_conv_grad_op.cc")
def _depthwise_filter(op: Op) -> Work:
    return filter_gradient(n_in(op, 2), prod(out_shape(op)[:2]), n_out(op))


@formula("Dilation2D", source="max over the window of x + w: core/kernels/dilation_ops.cc")
def _dilation(op: Op) -> Work:
    # filter (kh, kw, C)
    window = prod(shape(op, 1)[:2])
    return Work(add=n_out(op) * window) + pooling.max_pool(n_out(op), window)


@formula(
    "MaxPool",
    "MaxPool3D",
    "MaxPoolWithArgmax",
    source="pooling.max_pool: core/kernels/maxpooling_op.cc, pooling_ops_3d.cc",
)
def _max_pool(op: Op) -> Work:
    return pooling.max_pool(n_out(op), prod(ints(op, "ksize")))


@formula(
    "AvgPool", "AvgPool3D", source="pooling.avg_pool, dense windows: core/kernels/avgpooling_op.cc, pooling_ops_3d.cc"
)
def _avg_pool(op: Op) -> Work:
    return pooling.avg_pool(n_out(op), prod(ints(op, "ksize")))


@formula("AvgPoolGrad", source="grad / window, added to each element of the window: core/kernels/avgpooling_op.cc")
def _avg_pool_grad(op: Op) -> Work:
    # orig_input_shape (4,), grad
    return Work(div=n_in(op, 1), add=n_in(op, 1) * prod(ints(op, "ksize")))


@formula("MaxPoolGrad", source="the maximum sought again, grad added where it was: core/kernels/maxpooling_op.cc")
def _max_pool_grad(op: Op) -> Work:
    # orig_input, orig_output, grad
    return pooling.max_pool(n_in(op, 1), prod(ints(op, "ksize"))) + Work(add=n_in(op, 1))


@formula("Softmax", source="normalization.softmax: core/kernels/softmax_op_functor.h")
def _softmax(op: Op) -> Work:
    n = shape(op)[-1]
    return normalization.softmax(n_in(op) // n if n else 0, n)


@formula("LogSoftmax", source="normalization.log_softmax: core/kernels/softmax_op_functor.h")
def _log_softmax(op: Op) -> Work:
    n = shape(op)[-1]
    return normalization.log_softmax(n_in(op) // n if n else 0, n)


@formula(
    *("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
    source="normalization.batch_norm_inference, _training: core/kernels/fused_batch_norm_op.cc",
)
def _batch_norm(op: Op) -> Work:
    # x, scale (C,), offset (C,), mean, variance; running statistics only if exponential_avg_factor is not 1
    channels = shape(op, 1)[0]
    if not attr(op, "is_training"):
        return normalization.batch_norm_inference(n_in(op), channels, weight=True)
    return normalization.batch_norm_training(
        n_in(op), channels, weight=True, running=attr(op, "exponential_avg_factor", 1.0) != 1.0
    )


@formula(
    *("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
    source="normalization.batch_norm_inference_gradient, _training_gradient: core/kernels/fused_batch_norm_op.cc",
)
def _batch_norm_grad(op: Op) -> Work:
    # dy, x, scale (C,), mean or batch mean, variance or 1 / its root, ...
    known = normalization.batch_norm_training_gradient
    if not attr(op, "is_training"):
        known = normalization.batch_norm_inference_gradient
    return known(n_in(op), shape(op, 2)[0])


@formula("ResizeBilinear", source="pooling.lerp_bilinear: core/kernels/image/resize_bilinear_op.cc")
def _resize_bilinear(op: Op) -> Work:
    return pooling.lerp_bilinear(n_out(op))
