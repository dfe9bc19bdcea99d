"""Formulas of TensorFlow ops of the backward pass that add values back (scatter, segments, resizing), and of SGD's step.

layers.py has those of convolutions, pools and norms, elementwise.py the elementwise ones.
"""

from __future__ import annotations

from ...core.work import Work, formulas, no_arithmetic
from ..common_formulas import per_input
from ..elementwise import ADD, MUL
from ..shapes import n_in, n_out

formulas({
    "MaxPoolGradWithArgmax": (  # input, grad, argmax
        "each gradient added where its maximum was: core/kernels/maxpooling_op.cc", per_input(ADD, 1)
    ),
    "UnsortedSegmentSum SegmentSum SegmentSumV2 ResizeNearestNeighborGrad": (
        "each element added to what it was a copy of, from 0: core/kernels/segment_reduction_ops_impl.h, "
        "image/resize_nearest_neighbor_op.cc",
        per_input(ADD),
    ),
    "ScatterNd": (  # indices, updates, shape
        "each update added to its place, from 0: core/kernels/scatter_nd_op.cc", per_input(ADD, 1)
    ),
    "TensorScatterAdd TensorScatterSub ResourceScatterAdd ResourceScatterSub": (  # tensor or variable, indices, updates
        "each update added to its place: core/kernels/scatter_nd_op.cc, resource_variable_ops.cc", per_input(ADD, 2)
    ),
    "ResizeBilinearGrad": (  # grads, original_image
        "dy * wy * wx added to each of the four it came from; weights are made once per axis: "
        "core/kernels/image/resize_bilinear_op.cc",
        per_input(Work(mul=8, add=4)),
    ),
    "MirrorPadGrad": (
        "what was copied is folded back: core/kernels/image/mirror_pad_op.h", lambda op: ADD * (n_in(op) - n_out(op))
    ),
    "ResourceApplyGradientDescent": (  # var, alpha, delta
        "var -= alpha * delta: core/kernels/training_ops.cc", per_input(MUL + ADD, 2)
    ),
})  # fmt: skip

no_arithmetic("puts the values back where they were taken from; the rest is 0", "StridedSliceGrad")
