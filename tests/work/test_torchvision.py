"""torchvision's operators: loops over numbers that count, whose values are those of PyTorch's own samplers."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from reconcile.core.records import Tensor  # noqa: E402
from reconcile.core.work import SINGLE  # noqa: E402
from reconcile.work import ZERO, UnknownWork, Work, known_part, work_of  # noqa: E402
from tests.work.beside_torch import agree, data  # noqa: E402
from tests.work.counting import Accumulator, Num, Tally, dot, total, values  # noqa: E402
from tests.work.records_by_hand import make  # noqa: E402
from tests.work.torch_records import record  # noqa: E402
from tests.work.torchvision_ops import declared, deform_conv2d, ps_roi_align, roi_align  # noqa: E402

FEW = settings(max_examples=6, deadline=None)
BOTH = tuple(itertools.product((0, 1), repeat=2))


@pytest.fixture(scope="module")
def ops():
    with declared() as ops:
        yield ops


def called(ops, name, *arguments):
    """(results, record) of a call of one operator."""
    (op,) = record(getattr(ops, name), *arguments)
    assert op.op == f"torchvision.{name}"
    with torch.no_grad():
        return getattr(ops, name)(*arguments), op


def gradients(function, g, *wanted):
    """By autograd, of the first result; 0 for what it does not read."""
    wanted = [t.requires_grad_() for t in map(torch.from_numpy, wanted)]
    out = function(*wanted)
    found = torch.autograd.grad(
        out[0] if isinstance(out, tuple) else out, wanted, torch.from_numpy(g), allow_unused=True
    )
    return [torch.zeros_like(t) if d is None else d for t, d in zip(wanted, found, strict=True)]


def located(place):
    """(floor, (weight of the low neighbour, of the high one))"""
    low = place.special(math.floor)
    high = place - low
    return int(low.value), (1.0 - high, high)


def read(picture, y, x):
    inside = 0 <= y < picture.shape[0] and 0 <= x < picture.shape[1]
    return picture[y, x] if inside else Num(0.0, picture.flat[0].tally)


def neighbours(picture, y, x):
    return {(i, j): read(picture, y[0] + i, x[0] + j) for i, j in BOTH}


def add_to(target, index, value):
    """Into an array, or into nothing outside of it: counted both times."""
    inside = all(0 <= i < n for i, n in zip(index, target.shape, strict=True))
    if inside:
        target[index] = target[index] + value
    else:
        value.tally["add"] += 1


class Deformable:
    """A deformable convolution in loops; what a sample needs is computed once for all channels."""

    def __init__(self, tally, x, weight, offset, mask, options):
        (self.stride, self.pad, self.dilation), self.groups, self.offset_groups = options
        self.tally, self.x, self.weight, self.offset, self.mask = tally, x, weight, offset, mask
        self.out, self.kernel = offset.shape[-2:], weight.shape[2:]
        self.place = cache(self._place)
        self.sample = cache(self._sample)
        self.corners = cache(self._corners)

    def _place(self, b, group, tap, at):
        channel = 2 * ((group * self.kernel[0] + tap[0]) * self.kernel[1] + tap[1])
        return tuple(
            located(self.offset[(b, channel + i, *at)] + float(at[i] * self.stride - self.pad + tap[i] * self.dilation))
            for i in (0, 1)
        )

    def _corners(self, b, group, tap, at):
        y, x = self.place(b, group, tap, at)
        return {(i, j): y[1][i] * x[1][j] for i, j in BOTH}

    def group_of(self, c):
        return c // (self.x.shape[1] // self.offset_groups)

    def masked(self, b, c, tap, at):
        if self.mask is None:
            return None
        return self.mask[(b, (self.group_of(c) * self.kernel[0] + tap[0]) * self.kernel[1] + tap[1], *at)]

    def _sample(self, b, c, tap, at):
        where = (b, self.group_of(c), tap, at)
        found = neighbours(self.x[b, c], *self.place(*where))
        return total([found[corner] * weight for corner, weight in self.corners(*where).items()])

    def column(self, b, c, tap, at):
        value, mask = self.sample(b, c, tap, at), self.masked(b, c, tap, at)
        return value if mask is None else value * mask

    def everywhere(self):
        """Channels, taps and places of one picture."""
        taps = list(np.ndindex(self.kernel))
        return itertools.product(range(self.x.shape[0]), range(self.x.shape[1]), taps, np.ndindex(self.out))

    def columns(self):
        return {index: self.column(*index) for index in self.everywhere()}

    def channels_of(self, feature):
        """The first channel that a feature reads."""
        return feature // (self.weight.shape[0] // self.groups) * self.weight.shape[1]


def sized(channels, features, groups, offset_groups, masked, stride):
    channels, features = channels * groups * offset_groups, features * groups
    x, weight = data(2, channels, 4, 5), data(features, channels // groups, 2, 3)
    out = ((4 + 2 - 2) // stride + 1, (5 + 2 - 3) // stride + 1)
    offset = np.random.default_rng(1).uniform(-2, 2, size=(2, 2 * offset_groups * 6, *out))
    mask = np.random.default_rng(2).uniform(0, 1, size=(2, offset_groups * 6, *out)) if masked else np.zeros((2, 1))
    bias = data(features)
    arguments = (x, weight, offset, mask, bias)
    options = (stride, stride, 1, 1, 1, 1, groups, offset_groups, masked)
    return arguments, options


DEFORMABLE = given(
    channels=st.integers(1, 2), features=st.integers(1, 2), groups=st.integers(1, 2),
    offset_groups=st.integers(1, 2), masked=st.booleans(), stride=st.integers(1, 2),
)  # fmt: skip


@FEW
@DEFORMABLE
def test_a_deformable_convolution(ops, channels, features, groups, offset_groups, masked, stride):
    arguments, options = sized(channels, features, groups, offset_groups, masked, stride)
    expected, op = called(ops, "deform_conv2d", *map(torch.from_numpy, arguments), *options)
    tally = Tally()
    x, weight, offset, mask, bias = map(tally.array, arguments)
    loops = Deformable(tally, x, weight, offset, mask if masked else None, ((stride, 1, 1), groups, offset_groups))
    columns = loops.columns()
    result = np.empty(expected.shape, dtype=object)
    for b, feature, *at in np.ndindex(result.shape):
        first = loops.channels_of(feature)
        terms = [(c, tap) for c in range(weight.shape[1]) for tap in np.ndindex(loops.kernel)]
        read_ = [columns[b, first + c, tap, tuple(at)] for c, tap in terms]
        result[(b, feature, *at)] = dot(tally, read_, [weight[(feature, c, *tap)] for c, tap in terms]) + bias[feature]
    agree(tally, result, expected, op)


@FEW
@DEFORMABLE
def test_gradients_of_a_deformable_convolution(ops, channels, features, groups, offset_groups, masked, stride):
    arguments, options = sized(channels, features, groups, offset_groups, masked, stride)
    out = called(ops, "deform_conv2d", *map(torch.from_numpy, arguments), *options)[0]
    gradient = np.random.default_rng(4).normal(size=out.shape)
    _, op = called(ops, "_deform_conv2d_backward", *map(torch.from_numpy, (gradient, *arguments)), *options)
    expected = gradients(lambda *tensors: deform_conv2d(*tensors, *options), gradient, *arguments)
    tally = Tally()
    g, x, weight, offset, mask, _ = map(tally.array, (gradient, *arguments))
    loops = Deformable(tally, x, weight, offset, mask if masked else None, ((stride, 1, 1), groups, offset_groups))
    columns = loops.columns()
    of_x, of_offset, of_mask = (tally.zeros(t.shape) for t in (x, offset, mask))
    each = features  # of one group
    scaled = cache(lambda b, group, tap, at, m, corner: loops.corners(b, group, tap, at)[corner] * m)
    for b, c, tap, at in loops.everywhere():
        first = c // weight.shape[1] * each
        features_ = range(first, first + each)
        read_ = [weight[(f, c % weight.shape[1], *tap)] for f in features_]
        column = dot(tally, [g[(b, f, *at)] for f in features_], read_)
        group, m = loops.group_of(c), loops.masked(b, c, tap, at)
        y, place = loops.place(b, group, tap, at)
        for i, j in BOTH:
            corners = loops.corners(b, group, tap, at)
            share = corners[i, j] if m is None else scaled(b, group, tap, at, m, (i, j))
            add_to(of_x[b, c], (y[0] + i, place[0] + j), share * column)
        v = neighbours(x[b, c], y, place)
        slopes = (
            (v[1, 1] - v[0, 1]) * place[1][1] + place[1][0] * (v[1, 0] - v[0, 0]),
            (v[1, 1] - v[1, 0]) * y[1][1] + y[1][0] * (v[0, 1] - v[0, 0]),
        )
        channel = (group * loops.kernel[0] + tap[0]) * loops.kernel[1] + tap[1]
        for axis, slope in enumerate(slopes):
            slope = slope if m is None else slope * m
            add_to(of_offset, (b, 2 * channel + axis, *at), slope * column)
        if m is not None:
            add_to(of_mask, (b, channel, *at), loops.sample(b, c, tap, at) * column)
    of_weight = np.empty(weight.shape, dtype=object)
    for feature, c, *tap in np.ndindex(weight.shape):
        accumulator = Accumulator(tally)
        for b, *at in np.ndindex(2, *loops.out):
            accumulator.mac(columns[b, loops.channels_of(feature) + c, tuple(tap), tuple(at)], g[(b, feature, *at)])
        of_weight[(feature, c, *tap)] = accumulator.num()
    of_bias = np.array([total(g[:, f].ravel()) * 1.0 for f in range(weight.shape[0])])
    for mine, theirs in zip((of_x, of_weight, of_offset, of_mask, of_bias), expected, strict=True):
        np.testing.assert_allclose(values(mine), theirs, rtol=1e-7, atol=1e-9)
    assert work_of(op) == tally.work()
    parts = [work_of(op._replace(attrs={**op.attrs, "part": part})) for part in range(5)]
    assert sum(parts, ZERO) == tally.work()
    products = of_weight.size * 2 * math.prod(loops.out)
    assert [part.mac for part in parts] == [products, products, 0, 0, 0]


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
        "torchvision.roi_align",
        [x, boxes],
        [(4, 3, 2, 2)],
        sampling_ratio=-1,
        pooled_height=2,
        pooled_width=2,
        aligned=False,
    )
    for name in ("roi_align", "_roi_align_backward", "ps_roi_align", "_ps_roi_align_backward"):
        part = known_part(op._replace(op=f"torchvision.{name}"))
        assert (part.work, part.unknown) == (ZERO, frozenset(SINGLE)), name
        assert "sampling_ratio" in part.reason, name


def test_no_regions_no_work():
    options = {"sampling_ratio": 2, "pooled_height": 2, "pooled_width": 2, "aligned": False}
    x, none, pooled = (2, 3, 6, 5), (0, 5), (0, 3, 2, 2)
    assert work_of(make("torchvision.roi_align", [x, none], [pooled], **options)) == ZERO
    assert work_of(make("torchvision._roi_align_backward", [pooled, none], [x], **options)) == ZERO


def test_boxes_have_no_products():
    for name in ("nms", "box_iou_rotated", "roi_pool", "ps_roi_pool", "_ps_roi_pool_backward"):
        op = make(f"torchvision.{name}", [(5, 4), (5,)], [Tensor((3,), "int64")])
        assert (known_part(op).work, known_part(op).unknown) == (ZERO, frozenset(SINGLE)), name
        with pytest.raises(UnknownWork, match="the boxes say"):
            work_of(op)


def test_the_gradient_of_a_maximum_is_added_where_it_was_read():
    op = make("torchvision._roi_pool_backward", [(4, 3, 2, 2), (4, 5), Tensor((4, 3, 2, 2), "int32")], [(2, 3, 6, 5)])
    assert work_of(op) == Work(add=4 * 3 * 2 * 2)
