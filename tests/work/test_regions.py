"""Samples of regions, and of boxes: loops over numbers that count, whose values are those of PyTorch's own samplers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.records import Tensor
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import ZERO, UnknownWork, Work, known_part, work_of
from tests.work.beside_torch import agree, data
from tests.work.counting import Num, Tally, total
from tests.work.records_by_hand import make
from tests.work.samples import BOTH, add_to, called, gradients, located, read
from tests.work.torchvision_ops import declared, ps_roi_align, roi_align

FEW = settings(max_examples=6, deadline=None)


@pytest.fixture(scope="module")
def ops():
    with declared() as ops:
        yield ops


def regions():
    """In two pictures of 6 x 5: inside, over the edge by less than one element, by more, and outside."""
    return np.array(
        [[0, 0.7, 1.1, 3.9, 4.2], [1, -0.6, 0.2, 5.5, 6.2], [0, -3.0, 1.0, 2.2, 9.0], [1, 1.2, 2.1, 1.5, 2.3]]
    )


class Regions:
    """Samples of regions in loops; the places of one axis are computed once for the other, and all for all channels."""

    def __init__(self, tally, rois, scale, pooled, ratio, aligned, clipped):
        self.tally, self.pooled, self.ratio = tally, pooled, ratio
        self.bins = []
        for roi in rois:
            corners = [corner * scale for corner in roi[1:]]
            corners = [corner - 0.5 for corner in corners] if aligned else corners
            extents = [corners[2] - corners[0], corners[3] - corners[1]]
            extents = [extent.max(1.0) for extent in extents] if clipped else extents
            starts = (corners[1], corners[0])
            sizes = (extents[1] / float(pooled[0]), extents[0] / float(pooled[1]))
            self.bins.append((starts, sizes))
        self.edge = cache(lambda k, axis, i: self.bins[k][0][axis] + self.bins[k][1][axis] * float(i))
        self.step = cache(lambda k, axis, i: self.bins[k][1][axis] * (i + 0.5) / float(ratio))
        self.place = cache(self._place)
        self.corners = cache(self._corners)

    def _place(self, k, axis, i, j, size):
        place = self.edge(k, axis, i) + self.step(k, axis, j)
        self.tally["cmp"] += 2  # -1 and the size
        inside = -1 <= place.value <= size
        place = place.max(0.0)
        if place.value >= size - 1:
            place = Num(size - 1.0, self.tally)  # the last element: known by its index, which is an integer
        return inside, located(place)

    def _corners(self, k, y, x, sizes):
        rows, columns = self.place(k, 0, *y, sizes[0])[1][1], self.place(k, 1, *x, sizes[1])[1][1]
        return {(i, j): rows[i] * columns[j] for i, j in BOTH}

    def samples(self, k, i, j, sizes):
        """(inside, corner, weights) of each sample of a bin."""
        for y, x in np.ndindex(self.ratio, self.ratio):
            row, column = self.place(k, 0, i, y, sizes[0]), self.place(k, 1, j, x, sizes[1])
            yield row[0] and column[0], (row[1][0], column[1][0]), self.corners(k, (i, y), (j, x), sizes)


def pooled_by_loops(tally, x, rois, grid, shape, channel_of):
    result = np.empty(shape, dtype=object)
    for k, c, i, j in np.ndindex(shape):
        picture = x[int(rois[k, 0].value), channel_of(c, i, j)]
        terms = []
        for inside, (y, column), corners in grid.samples(k, i, j, picture.shape):
            for (down, right), weight in corners.items():
                value = read(picture, y + down, column + right)
                terms.append((value if inside else Num(0.0, tally)) * weight)
        result[k, c, i, j] = total(terms) / float(grid.ratio**2)
    return result


def spread_by_loops(tally, g, rois, grid, shape, channel_of):
    result = tally.zeros(shape)
    for k, c, i, j in np.ndindex(g.shape):
        target = result[int(rois[k, 0].value), channel_of(c, i, j)]
        for inside, (y, column), corners in grid.samples(k, i, j, shape[2:]):
            for (down, right), weight in corners.items():
                share = weight * g[k, c, i, j] / float(grid.ratio**2)
                add_to(target, (y + down if inside else -1, column + right), share)
    return result


REGIONS = given(channels=st.integers(1, 2), height=st.integers(1, 3), width=st.integers(1, 2), ratio=st.integers(1, 2))


@FEW
@REGIONS
@pytest.mark.parametrize("aligned", [True, False])
def test_samples_of_regions(ops, channels, height, width, ratio, aligned):
    x, boxes = data(2, channels, 6, 5), regions()
    where = (0.5 + 0.5 * aligned, height, width)
    expected, op = called(ops, "roi_align", torch.from_numpy(x), torch.from_numpy(boxes), *where, ratio, aligned)
    tally = Tally()
    rois = tally.array(boxes)
    grid = Regions(tally, rois, where[0], where[1:], ratio, aligned, not aligned)
    agree(
        tally,
        pooled_by_loops(tally, tally.array(x), rois, grid, tuple(expected.shape), lambda c, i, j: c),
        expected,
        op,
    )
    # the gradient
    g = np.random.default_rng(5).normal(size=expected.shape)
    given_ = (torch.from_numpy(g), torch.from_numpy(boxes), *where, *x.shape, ratio, aligned)
    _, op = called(ops, "_roi_align_backward", *given_)
    (expected,) = gradients(lambda t: roi_align(t, given_[1], *where, ratio, aligned), g, x)
    tally = Tally()
    rois = tally.array(boxes)
    grid = Regions(tally, rois, where[0], where[1:], ratio, aligned, not aligned)
    agree(tally, spread_by_loops(tally, tally.array(g), rois, grid, x.shape, lambda c, i, j: c), expected, op)


@FEW
@REGIONS
def test_samples_of_regions_by_position(ops, channels, height, width, ratio):
    x, boxes = data(2, channels * height * width, 6, 5), regions()

    def channel_of(c, i, j):
        return (c * height + i) * width + j

    where = (0.75, height, width)
    (expected, mapping), op = called(ops, "ps_roi_align", torch.from_numpy(x), torch.from_numpy(boxes), *where, ratio)
    tally = Tally()
    rois = tally.array(boxes)
    grid = Regions(tally, rois, where[0], where[1:], ratio, True, False)
    agree(tally, pooled_by_loops(tally, tally.array(x), rois, grid, tuple(expected.shape), channel_of), expected, op)
    g = np.random.default_rng(5).normal(size=expected.shape)
    given_ = (torch.from_numpy(g), torch.from_numpy(boxes), mapping, *where, ratio, *x.shape)
    _, op = called(ops, "_ps_roi_align_backward", *given_)
    (expected,) = gradients(lambda t: ps_roi_align(t, given_[1], *where, ratio), g, x)
    tally = Tally()
    rois = tally.array(boxes)
    grid = Regions(tally, rois, where[0], where[1:], ratio, True, False)
    agree(tally, spread_by_loops(tally, tally.array(g), rois, grid, x.shape, channel_of), expected, op)


def test_without_a_sampling_ratio_the_boxes_decide(ops):
    x, boxes = torch.zeros(2, 3, 6, 5), torch.zeros(4, 5)
    op = make(
        "torchvision.roi_align", [x, boxes], [(4, 3, 2, 2)], sampling_ratio=-1, pooled_height=2, pooled_width=2,
        aligned=False,
    )  # fmt: skip
    for name in ("roi_align", "_roi_align_backward", "ps_roi_align", "_ps_roi_align_backward"):
        part = known_part(op._replace(op=f"torchvision.{name}"))
        assert (part.work, part.unknown) == (ZERO, frozenset(SINGLE_COMPONENTS)), name
        assert "sampling_ratio" in part.reason, name


def test_no_regions_no_work():
    options = {"sampling_ratio": 2, "pooled_height": 2, "pooled_width": 2, "aligned": False}
    x, none, pooled = (2, 3, 6, 5), (0, 5), (0, 3, 2, 2)
    assert work_of(make("torchvision.roi_align", [x, none], [pooled], **options)) == ZERO
    assert work_of(make("torchvision._roi_align_backward", [pooled, none], [x], **options)) == ZERO


def test_boxes_have_no_products():
    for name in ("nms", "box_iou_rotated", "roi_pool", "ps_roi_pool", "_ps_roi_pool_backward"):
        op = make(f"torchvision.{name}", [(5, 4), (5,)], [Tensor((3,), "int64")])
        assert (known_part(op).work, known_part(op).unknown) == (ZERO, frozenset(SINGLE_COMPONENTS)), name
        with pytest.raises(UnknownWork, match="the boxes say"):
            work_of(op)


def test_the_gradient_of_a_maximum_is_added_where_it_was_read():
    op = make("torchvision._roi_pool_backward", [(4, 3, 2, 2), (4, 5), Tensor((4, 3, 2, 2), "int32")], [(2, 3, 6, 5)])
    assert work_of(op) == Work(add=4 * 3 * 2 * 2)
