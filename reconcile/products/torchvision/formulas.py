"""Formulas of torchvision's operators ("torchvision.<name>"): deformable convolution, RoI pooling and boxes.

The work is that of the expressions of torchvision's kernels for the CPU, each intermediate computed once: a sample's coordinates
and weights are shared by all channels. Samples outside the picture count, as padding does in a convolution.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, formulas, prod
from ...work.common_formulas import per_input, unknown_work_formula
from ...work.contraction import dots
from ...work.convolution import taps_torch
from ...work.elementwise import ADD, CMP, DIV, MUL, SPECIAL
from ...work.sampling import BILINEAR, weights
from ...work.shapes import attr, n_in, n_out, shape

_NEIGHBOURS = 4
_SUM = MUL * _NEIGHBOURS + ADD * (_NEIGHBOURS - 1)
"""Of the neighbours of one sample, times their weights."""
_SLOPE = MUL * 2 + ADD * 3
"""For a sample along one axis: b (v11 - v10) + (1 - b) (v01 - v00), with the weight b of the other axis."""


class _Deformable(NamedTuple):
    """Sizes of a deformable convolution: of all groups of offsets, and of all channels."""

    samples: int
    columns: int
    products: Work
    masked: bool


def _deformable(op: Op, first: int) -> _Deformable:
    # picture (B, Cin, *in), weight (Cout, Cin/g, *k), offset (B, 2 * offset groups * k, *out), mask, bias (Cout,)
    picture, weight, offset = (shape(op, first + i) for i in range(3))
    places = offset[-2] * offset[-1]
    return _Deformable(
        samples=prod(offset) // 2,
        columns=prod(picture[:2]) * prod(weight[2:]) * places,
        products=dots(picture[0] * weight[0] * places, taps_torch(weight)),
        masked=bool(attr(op, "use_mask")),
    )


def _deform_conv2d(op: Op) -> Work:
    sizes = _deformable(op, 0)
    located = (ADD * 2 + weights(BILINEAR, 2)) * sizes.samples
    sampled = (_SUM + MUL * sizes.masked) * sizes.columns
    return located + sampled + sizes.products + ADD * n_out(op)


def _deform_conv2d_backward(op: Op) -> Work:
    # all five gradients are always computed: the record is of the call, or of the one that `part` names
    part = op.attrs.get("part")
    if part is None:
        return _of_gradients(op, 5)
    return _of_gradients(op, part + 1) - _of_gradients(op, part)


def _of_gradients(op: Op, count: int) -> Work:
    """Of the first ``count`` of the gradients of the picture, the weight, the offset, the mask and the bias, in this order."""
    # g (B, Cout, *out), then as forward
    sizes, biases = _deformable(op, 1), shape(op)[1]
    masked, columns, macs = sizes.masked, sizes.columns, sizes.products.mac
    # the columns' gradient, of which those of the picture, the offset and the mask are made
    located = (ADD * 2 + weights(BILINEAR, 2)) * sizes.samples
    of_columns = located + Work(mac=macs, accumulators=columns if macs else 0)
    # of the picture: mask x weight once per sample; of an offset: mask x slope; each times the column's gradient, and added
    of_picture = MUL * (_NEIGHBOURS * masked * sizes.samples) + (MUL + ADD) * (_NEIGHBOURS * columns)
    of_weight = (_SUM + MUL * masked) * columns + Work(mac=macs, accumulators=n_in(op, 2) if macs else 0)
    of_offset = (_SLOPE + MUL * masked + MUL + ADD) * (2 * columns)
    of_mask = (MUL + ADD) * (masked * columns)
    # a sum times ones
    of_bias = Work(add=max(n_in(op) - biases, 0), mul=biases)
    return sum((of_columns + of_picture, of_weight, of_offset, of_mask, of_bias)[:count], Work())


def _grid(op: Op) -> tuple[int, Work]:
    """Samples of one bin; and the work of the coordinates and the weights of all samples of all regions (K, 5): an aligned region
    is shifted and of any size, and so are those of ps_roi_align; any other is clipped."""
    regions, per_axis = shape(op, 1)[0], int(attr(op, "sampling_ratio"))
    if per_axis <= 0:
        raise UnknownWork(
            f"the work of {op.op} is not fixed without a sampling_ratio: the sizes of the boxes say how many samples a bin has",
            SINGLE_COMPONENTS,
        )
    aligned = "ps_roi" in op.op or bool(attr(op, "aligned"))
    # corners times the scale, less a half; width and height, at least 1; the sizes of a bin
    of_region = MUL * 4 + ADD * (4 * aligned + 2) + CMP * (0 if aligned else 2) + DIV * 2
    samples = 1
    for bins in (int(attr(op, "pooled_height")), int(attr(op, "pooled_width"))):
        places = bins * per_axis
        # start + bin x its size; (i + 1/2) x size / samples; their sum, from -1 to the picture's size, at least 0; its weights
        of_region += (MUL + ADD) * bins + (MUL + DIV) * per_axis + (ADD + CMP * 3 + _LOCATED) * places
        samples *= places
    return per_axis**2, (of_region + MUL * (_NEIGHBOURS * samples)) * regions


_LOCATED = SPECIAL + ADD * 2
"""For a coordinate: its floor, the distance from it, 1 less that."""


def _pool_regions(op: Op) -> Work:
    # picture (B, channels, H, W), regions (K, 5) -> (K, C, ph, pw)
    outputs = n_out(op)
    samples, located = _grid(op)
    neighbours = samples * _NEIGHBOURS
    return located + (MUL * neighbours + ADD * (neighbours - 1) + DIV) * outputs


def _spread_gradient(op: Op) -> Work:
    # g (K, C, ph, pw), regions (K, 5) -> (B, channels, H, W)
    samples, located = _grid(op)
    return located + (MUL + DIV + ADD) * (samples * _NEIGHBOURS * n_in(op))


formulas({
    "deform_conv2d": (
        "coordinates (2 add) and weights of every sample; per channel its bilinear sum, times the mask: the columns; one dot "
        "product and one bias per output element: torchvision csrc/ops/cpu/deform_conv2d_kernel.cpp (deformable_im2col_kernel)",
        _deform_conv2d,
    ),
    "_deform_conv2d_backward": (
        "the columns again, and products for their gradient and for the weight; each column's gradient onto its neighbours, "
        "onto both coordinates by their slopes, onto the mask; the bias: torchvision csrc/ops/cpu/deform_conv2d_kernel.cpp "
        "(deformable_col2im_kernel, deformable_col2im_coord_kernel)",
        _deform_conv2d_backward,
    ),
    "roi_align": (
        "coordinates and weights of the samples of each region; per output element the mean of the bilinear sums of its bin; "
        "without a sampling_ratio not fixed: torchvision csrc/ops/cpu/roi_align_kernel.cpp, roi_align_common.h",
        _pool_regions,
    ),
    "_roi_align_backward": (
        "coordinates and weights as forward; per sample and neighbour g times the weight, divided by the samples of the bin, "
        "added: torchvision csrc/ops/cpu/roi_align_kernel.cpp (roi_align_backward_kernel_impl)",
        _spread_gradient,
    ),
    "ps_roi_align": (
        "as roi_align, aligned and with regions of any size; each bin reads a channel of its own: torchvision "
        "csrc/ops/cpu/ps_roi_align_kernel.cpp",
        _pool_regions,
    ),
    "_ps_roi_align_backward": (
        "coordinates and weights as forward; then as roi_align's gradient: torchvision csrc/ops/cpu/ps_roi_align_kernel.cpp",
        _spread_gradient,
    ),
    "_roi_pool_backward": (
        "g added where the maximum was read: torchvision csrc/ops/cpu/roi_pool_kernel.cpp", per_input(ADD)
    ),
    "nms box_iou_rotated roi_pool ps_roi_pool _ps_roi_pool_backward": (
        "no products of matrices; the rest is not fixed: the boxes say which pairs are compared and how large a bin is: "
        "torchvision csrc/ops/cpu/nms_kernel.cpp, roi_pool_kernel.cpp, ps_roi_pool_kernel.cpp, box_iou_rotated_kernel.cpp",
        unknown_work_formula("the work of {} is not fixed: the boxes say which pairs or elements are computed"),
    ),
}, "torchvision.")  # fmt: skip
