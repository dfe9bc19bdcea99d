"""Deformable convolutions: loops over numbers that count, whose values are those of PyTorch's own samplers."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.work import ZERO, work_of
from tests.work.beside_torch import agree, data
from tests.work.counting import Accumulator, Tally, dot, total, values
from tests.work.samples import BOTH, add_to, called, gradients, located, neighbours
from tests.work.torchvision_ops import declared, deform_conv2d

FEW = settings(max_examples=3, deadline=None)


@pytest.fixture(scope="module")
def ops():
    with declared() as ops:
        yield ops


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
