"""TensorFlow ops of the backward pass and of the optimiser's step; those of convolutions and norms are in tf_layers.py,
elementwise ones in elementwise.py."""

from __future__ import annotations

from ..core.records import Op
from ..core.work import Work, formula, no_arithmetic, prod
from . import gradients, pooling
from .elementwise import ADD, MUL
from .shapes import ints, n_in, n_out


@formula("AvgPool3DGrad", source="gradients.avg_pool, dense windows: core/kernels/pooling_ops_3d.cc")
def _avg_pool(op: Op) -> Work:
    # orig_input_shape (5,), grad
    return gradients.avg_pool(n_in(op, 1), n_in(op, 1) * prod(ints(op, "ksize")))


@formula("MaxPool3DGrad", source="the maximum sought again, grad added where it was: core/kernels/pooling_ops_3d.cc")
def _max_pool(op: Op) -> Work:
    # orig_input, orig_output, grad
    return pooling.max_pool(n_in(op, 1), prod(ints(op, "ksize"))) + ADD * n_in(op, 1)


@formula("MaxPoolGradWithArgmax", source="each gradient added where its maximum was: core/kernels/maxpooling_op.cc")
def _max_pool_argmax(op: Op) -> Work:
    # input, grad, argmax
    return ADD * n_in(op, 1)


@formula(
    *("UnsortedSegmentSum", "SegmentSum", "SegmentSumV2", "ResizeNearestNeighborGrad"),
    source="each element added to what it was a copy of, from 0: core/kernels/segment_reduction_ops_impl.h, "
    "image/resize_nearest_neighbor_op.cc",
)
def _added(op: Op) -> Work:
    return ADD * n_in(op)


@formula("ScatterNd", source="each update added to its place, from 0: core/kernels/scatter_nd_op.cc")
def _scattered(op: Op) -> Work:
    # indices, updates, shape
    return ADD * n_in(op, 1)


@formula(
    *("TensorScatterAdd", "TensorScatterSub", "ResourceScatterAdd", "ResourceScatterSub"),
    source="each update added to its place: core/kernels/scatter_nd_op.cc, resource_variable_ops.cc",
)
def _added_in_place(op: Op) -> Work:
    # tensor or variable, indices, updates
    return ADD * n_in(op, 2)


@formula(
    "ResizeBilinearGrad",
    source="dy * wy * wx added to each of the four it came from; weights are made once per axis: "
    "core/kernels/image/resize_bilinear_op.cc",
)
def _resize_bilinear(op: Op) -> Work:
    # grads, original_image
    return Work(mul=8, add=4) * n_in(op)


@formula("MirrorPadGrad", source="what was copied is folded back: core/kernels/image/mirror_pad_op.h")
def _mirror_pad(op: Op) -> Work:
    return ADD * (n_in(op) - n_out(op))


@formula("ResourceApplyGradientDescent", source="var -= alpha * delta: core/kernels/training_ops.cc")
def _descent(op: Op) -> Work:
    # var, alpha, delta
    return (MUL + ADD) * n_in(op, 2)


no_arithmetic(
    "puts the values back where they were taken from; the rest is 0",
    "StridedSliceGrad",
)
