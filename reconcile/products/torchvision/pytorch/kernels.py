"""CPU kernels of torchvision's ``nms`` and ``roi_align`` in plain PyTorch, where torchvision's compiled library cannot be loaded.

A detector uses their values: the boxes that remain decide how much work its next layer does.  They are slow, and only for
counting.
"""

from __future__ import annotations

from typing import Any

import torch


def nms(boxes: Any, scores: Any, threshold: float) -> Any:
    """Indices of the boxes (N, 4: x1, y1, x2, y2) that overlap no box of a higher score by more than the threshold, the highest
    first (torchvision csrc/ops/cpu/nms_kernel.cpp)."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = scores.argsort(descending=True, stable=True)
    kept = []
    while len(left):
        first, rest = left[0], left[1:]
        kept.append(first)
        low = torch.maximum(boxes[first, :2], boxes[rest, :2])
        high = torch.minimum(boxes[first, 2:], boxes[rest, 2:])
        common = (high - low).clamp(min=0).prod(1)
        # as torchvision does, not > : the overlap of two empty boxes is no number, and both are kept
        over = common / (area[first] + area[rest] - common) > threshold
        left = rest[~over]
    return torch.stack(kept) if kept else left


def roi_align(x: Any, rois: Any, scale: float, height: int, width: int, ratio: int, aligned: bool) -> Any:
    """Means (K, C, height, width) of samples of the regions (K, 5: picture, x1, y1, x2, y2) of pictures (B, C, H, W)
    (torchvision csrc/ops/cpu/roi_align_kernel.cpp)."""
    means = [_of_region(x[int(roi[0])], roi[1:] * scale, (height, width), ratio, aligned) for roi in rois]
    return torch.stack(means) if means else x.new_zeros(0, x.shape[1], height, width)


def _of_region(picture: Any, corners: Any, bins: tuple[int, int], ratio: int, aligned: bool) -> Any:
    """Means (C, height, width) of samples of one region of a picture (C, H, W)."""
    corners = corners - (0.5 if aligned else 0.0)
    extents = corners[2:] - corners[:2]
    extents = extents if aligned else extents.clamp(min=1.0)
    places, inside, samples = [], [], []
    for axis, size in ((1, picture.shape[1]), (0, picture.shape[2])):
        count = bins[1 - axis]
        one = extents[axis] / count
        each = ratio if ratio > 0 else max(1, int(one.ceil()))
        step = (torch.arange(each, dtype=corners.dtype) + 0.5) / each
        within = torch.arange(count, dtype=corners.dtype)[:, None] + step[None]
        place = corners[axis] + one * within.reshape(-1)
        inside.append((place >= -1) & (place <= size))
        # align_corners of grid_sample: -1 and 1 are the centres of the first and the last element
        places.append(2 * place.clamp(0, size - 1) / max(size - 1, 1) - 1)
        samples.append(each)
    rows, columns = len(places[0]), len(places[1])
    grid = torch.stack([places[1][None, :].expand(rows, columns), places[0][:, None].expand(rows, columns)], -1)
    values = torch.nn.functional.grid_sample(picture[None], grid[None].to(picture.dtype), align_corners=True)[0]
    values = values * (inside[0][:, None] & inside[1][None, :])
    return values.reshape(-1, bins[0], samples[0], bins[1], samples[1]).mean((2, 4))


KERNELS = {"nms": nms, "roi_align": roi_align}
