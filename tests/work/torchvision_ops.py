"""torchvision's operators without torchvision: its schemas, and kernels made of PyTorch's own samplers. Those of gradients give
shapes alone: autograd has no say in a kernel, and tests ask it of the functions below.

A bilinear sample with zeros outside is ``grid_sample``; a sample of a region is one whose place is moved to the picture's edge
if it is outside by less than one element, and 0 further out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from reconcile.products.torchvision.pytorch.kernels import nms, roi_align

__all__ = ["declared", "nms", "ps_roi_align", "roi_align"]
_WHERE = "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w"
_PICTURE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, Tensor rois, {_POOLED}, {_PICTURE}, int sampling_ratio, bool aligned) -> Tensor",
    f"ps_roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, int sampling_ratio, {_PICTURE}) "
    "-> Tensor",
    f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_WHERE}, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_WHERE}, "
    "SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
"""As torchvision 0.28 registers them."""


def bilinear(picture: Any, y: Any, x: Any) -> Any:
    """Samples (B, C, P) of a picture (B, C, H, W) at places (B, P); 0 outside."""
    height, width = picture.shape[-2:]
    # align_corners: -1 and 1 are the centres of the first and the last element
    grid = torch.stack([2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], -1)
    return torch.nn.functional.grid_sample(picture, grid[:, None], align_corners=True)[:, :, 0]


def deform_conv2d(x: Any, weight: Any, offset: Any, mask: Any, bias: Any, *options: Any) -> Any:
    """Columns of samples, and their product with the weight."""
    (stride, pad, dilation), groups, offset_groups, use_mask = (
        (options[0:2], options[2:4], options[4:6]),
        *options[6:],
    )
    batch, channels = x.shape[:2]
    kernel, out = weight.shape[2:], offset.shape[-2:]
    taps = kernel[0] * kernel[1]
    offset = offset.reshape(batch, offset_groups, *kernel, 2, *out)
    base = [
        (torch.arange(out[i]) * stride[i] - pad[i])[None, :] + (torch.arange(kernel[i]) * dilation[i])[:, None]
        for i in (0, 1)
    ]
    y = offset[:, :, :, :, 0] + base[0][None, None, :, None, :, None]
    place = offset[:, :, :, :, 1] + base[1][None, None, None, :, None, :]
    pictures = x.reshape(batch * offset_groups, channels // offset_groups, *x.shape[2:])
    flat = [axis.reshape(batch * offset_groups, -1) for axis in (y, place)]
    columns = bilinear(pictures, *flat).reshape(batch, offset_groups, -1, taps, *out)
    if use_mask:
        columns = columns * mask.reshape(batch, offset_groups, 1, taps, *out)
    columns = columns.reshape(batch, groups, channels // groups * taps, -1)
    weights = weight.reshape(groups, weight.shape[0] // groups, -1)
    product = torch.einsum("gok,bgkp->bgop", weights, columns)
    return product.reshape(batch, weight.shape[0], *out) + bias[None, :, None, None]


def samples_of_regions(x: Any, rois: Any, scale: float, pooled: Any, ratio: int, aligned: bool, clipped: bool) -> Any:
    """(K, C, ph, ratio, pw, ratio)"""
    height, width = x.shape[-2:]
    corners = rois[:, 1:] * scale - (0.5 if aligned else 0.0)
    places = []
    for axis, size in ((1, height), (0, width)):
        bins = pooled[1 - axis]
        start, extent = corners[:, axis], corners[:, axis + 2] - corners[:, axis]
        one = (extent.clamp(min=1.0) if clipped else extent) / bins
        within = torch.arange(bins)[:, None] + (torch.arange(ratio) + 0.5)[None] / ratio
        place = start[:, None] + one[:, None] * within.reshape(-1)
        inside = (place >= -1) & (place <= size)
        places.append((place.clamp(0, size - 1), inside))
    (y, in_y), (column, in_x) = places
    shape = (len(rois), y.shape[1], column.shape[1])
    y, column = (t.expand(shape).reshape(len(rois), -1) for t in (y[:, :, None], column[:, None, :]))
    values = bilinear(x[rois[:, 0].long()], y, column).reshape(len(rois), x.shape[1], *shape[1:])
    values = values * (in_y[:, None, :, None] & in_x[:, None, None, :])
    return values.reshape(len(rois), x.shape[1], pooled[0], ratio, pooled[1], ratio)


def ps_roi_align(x: Any, rois: Any, scale: float, height: int, width: int, ratio: int) -> Any:
    means = samples_of_regions(x, rois, scale, (height, width), ratio, True, False).mean((3, 5))
    channels = torch.arange(x.shape[1]).reshape(-1, height, width)
    rows, columns = torch.arange(height)[:, None], torch.arange(width)[None]
    return means[:, channels, rows, columns], channels.expand(len(rois), *channels.shape).to(torch.int32)


def _roi_align_backward(g: Any, _rois: Any, *options: Any) -> Any:
    return g.new_empty(options[3:7])


def _ps_roi_align_backward(g: Any, _rois: Any, _channels: Any, *options: Any) -> Any:
    return g.new_empty(options[4:])


def _deform_conv2d_backward(_g: Any, *arguments: Any) -> Any:
    return tuple(torch.empty_like(t) for t in arguments[:5])


def _shape_of_regions(x: Any, rois: Any, _scale: float, height: int, width: int, *_rest: Any) -> Any:
    return x.new_empty(len(rois), x.shape[1], height, width)


def _shape_of_deformed(x: Any, weight: Any, offset: Any, *_rest: Any) -> Any:
    return x.new_empty(x.shape[0], weight.shape[0], *offset.shape[-2:])


SHAPES = {"roi_align": _shape_of_regions, "deform_conv2d": _shape_of_deformed}
"""What is registered for meta: nms has nothing there, for its result depends on values."""


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.given = inputs


def _of_regions(ctx: Any, g: Any) -> Any:
    x, rois, *pooled, ratio, aligned = ctx.given
    return torch.ops.torchvision._roi_align_backward(g, rois, *pooled, *x.shape, ratio, aligned), *[None] * 6


def _of_deformed(ctx: Any, g: Any) -> Any:
    return *torch.ops.torchvision._deform_conv2d_backward(g, *ctx.given), *[None] * 9


@contextmanager
def declared() -> Iterator[Any]:
    """``torch.ops.torchvision`` with these operators, meanwhile."""
    with torch.library._scoped_library("torchvision", "DEF") as library:
        for schema in SCHEMAS:
            name = schema.partition("(")[0]
            library.define(schema)
            library.impl(name, globals()[name], "CompositeExplicitAutograd")
        for name, kernel in SHAPES.items():
            library.impl(name, kernel, "Meta")
        for name, backward in (("roi_align", _of_regions), ("deform_conv2d", _of_deformed)):
            torch.library.register_autograd(f"torchvision::{name}", backward, setup_context=_keep, lib=library)
        yield torch.ops.torchvision
