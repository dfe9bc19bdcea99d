"""Operators that torchvision registers ("torchvision.<name>"): those of detection, whose work depends on where the boxes are."""

from __future__ import annotations

from ..core.records import Op
from ..core.work import SINGLE, UnknownWork, Work, formula
from .contraction import dots
from .convolution import taps_torch
from .shapes import n_in, shape


@formula(
    *("torchvision.nms", "torchvision.roi_align", "torchvision._roi_align_backward", "torchvision.roi_pool"),
    *("torchvision._roi_pool_backward", "torchvision.ps_roi_align", "torchvision._ps_roi_align_backward"),
    *("torchvision.ps_roi_pool", "torchvision._ps_roi_pool_backward"),
    source="no products of matrices; the rest is not fixed: the boxes say which pairs or samples are computed: "
    "torchvision csrc/ops/cpu/nms_kernel.cpp, roi_align_kernel.cpp",
)
def _boxes(op: Op) -> Work:
    n_in(op)
    raise UnknownWork(f"the work of {op.op} is not fixed: the boxes say which pairs or samples are computed", SINGLE)


@formula(
    "torchvision.deform_conv2d",
    source="one dot product per output element, of sampled columns; the work of sampling is not fixed: "
    "torchvision csrc/ops/cpu/deform_conv2d_kernel.cpp",
)
def _deform_conv2d(op: Op) -> Work:
    # picture (B, Cin, *in), weight (Cout, Cin/g, *k), offset (B, 2 * offset groups * k, *out)[, mask, bias]
    _sampled(op, _products(op, 0))
    return Work()


@formula(
    "torchvision._deform_conv2d_backward",
    source="two products as large as the forward one, for the columns and for the weight: deform_conv2d_kernel.cpp",
)
def _deform_conv2d_backward(op: Op) -> Work:
    # g (B, Cout, *out), picture, weight, offset[, mask, bias]; the gradients of picture, offset and mask share a product
    forward, (features, own, *_) = _products(op, 1), shape(op, 2)
    # a column is as long as the picture's channels times the kernel, a feature's dot product only as its group's
    columns = forward.mac * shape(op, 1)[1] // (features * own) if features * own else 0
    _sampled(op, Work(mac=2 * forward.mac, accumulators=columns + n_in(op, 2)))
    return Work()


def _products(op: Op, first: int) -> Work:
    """Of the convolution; the offset has the sizes of its output."""
    picture, weight, offset = (shape(op, first + i) for i in range(3))
    outputs = picture[0] * weight[0] * offset[-2] * offset[-1]
    return dots(outputs, taps_torch(weight))


def _sampled(op: Op, products: Work) -> None:
    raise UnknownWork(
        f"the work of sampling in {op.op} is not fixed: the offsets say which places are read", SINGLE, products
    )
