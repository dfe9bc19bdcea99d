"""Grid samplers and antialiased resizing: loops over numbers that count, whose values are torch's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.work import ZERO, UnknownWork, sampling, work_of
from tests.work.beside_torch import SMALL, agree, data
from tests.work.counting import Num, Tally, total, values
from tests.work.records_by_hand import make
from tests.work.torch_records import record

F = torch.nn.functional
FEW = settings(max_examples=10, deadline=None)
MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def reflected(x, twice_low, twice_high):
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    x = x - low
    x = x.max(-x.value)
    rest = x._do("div", math.fmod(x.value, span))
    flips = (x / span).special(math.floor)
    near, far = rest.value + low, span - rest + low  # the costlier side was computed
    return Num(near, x.tally) if flips.value % 2 == 0 else far


def padded(x, size, padding, align):
    if padding == "reflection":
        x = reflected(x, 0, 2 * (size - 1)) if align else reflected(x, -1, 2 * size - 1)
    return x if padding == "zeros" else x.max(0.0).min(size - 1.0)


def unnormalised(x, size, align):
    return (x + 1.0) / 2.0 * (size - 1.0) if align else ((x + 1.0) * float(size) - 1.0) / 2.0


def read(picture, index):
    """One channel's value, 0 outside."""
    inside = all(0 <= i < n for i, n in zip(index, picture.shape, strict=True))
    return picture[tuple(index)] if inside else Num(0.0, picture.flat[0].tally)


def cubic(t):
    a = -0.75

    def inner(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1.0

    def outer(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    rest = 1.0 - t
    return [outer(t + 1.0), inner(t), inner(rest), outer(rest + 1.0)]


def corners(distances):
    """Corner -> its weight, the product of one distance per axis."""
    found = {}
    for corner in itertools.product((0, 1), repeat=len(distances)):
        weight = distances[0][corner[0]]
        for axis, side in enumerate(corner[1:], 1):
            weight = weight * distances[axis][side]
        found[corner] = weight
    return found


def place(point, sizes, mode, padding, align):
    """The neighbours' indices with their weights (one factor per axis if cubic), and the distances."""
    at = [unnormalised(x, n, align) for x, n in zip(point[::-1], sizes, strict=True)]
    if mode == "bicubic":
        low = [x.special(math.floor) for x in at]
        factors = [cubic(x - n.value) for x, n in zip(at, low, strict=True)]
        indices = [
            [int(padded(Num(n.value + i - 1, n.tally), size, padding, align).value) for i in range(4)]
            for n, size in zip(low, sizes, strict=True)
        ]
        return indices, factors
    at = [padded(x, n, padding, align) for x, n in zip(at, sizes, strict=True)]
    low = [x.special(round if mode == "nearest" else math.floor) for x in at]
    start = [int(n.value) for n in low]
    if mode == "nearest":
        return start, None
    distances = [(n.value + 1 - x, x - n.value) for x, n in zip(at, low, strict=True)]
    return start, distances


def sampled(tally, x, grid, mode, padding, align):
    """x (B, C, *in), grid (B, *out, axes)."""
    axes = x.ndim - 2
    result = np.empty((*x.shape[:2], *grid.shape[1:-1]), dtype=object)
    for index in np.ndindex(grid.shape[:-1]):
        b, at = index[0], index[1:]
        start, weights = place(grid[index], x.shape[2:], mode, padding, align)
        products = corners(weights) if mode == "bilinear" else None
        for c in range(x.shape[1]):
            picture = x[b, c]
            if mode == "nearest":
                value = read(picture, start)
            elif mode == "bilinear":
                value = total(
                    [
                        read(picture, [i + s for i, s in zip(start, corner, strict=True)]) * w
                        for corner, w in products.items()
                    ]
                )
            else:
                rows = [
                    total([read(picture, (r, col)) * w for col, w in zip(start[1], weights[1], strict=True)])
                    for r in start[0]
                ]
                value = total([row * w for row, w in zip(rows, weights[0], strict=True)])
            result[(b, c, *at)] = value
    assert axes == len(x.shape[2:])
    return result


def grids(*shape):
    return np.random.default_rng(3).uniform(-1.3, 1.3, size=shape)


@FEW
@given(
    mode=st.sampled_from(MODES),
    padding=st.sampled_from(PADDINGS),
    align=st.booleans(),
    channels=SMALL,
    axes=st.integers(2, 3),
)
def test_grid_sampler(mode, padding, align, channels, axes):
    axes = 2 if mode == "bicubic" else axes
    x = data(2, channels, *(3, 4, 2)[:axes])
    grid = grids(2, *(2, 3, 2)[:axes], axes)
    tally = Tally()
    result = sampled(tally, tally.array(x), tally.array(grid), mode, padding, align)
    options = {"mode": mode, "padding_mode": padding, "align_corners": align}
    expected = F.grid_sample(torch.from_numpy(x), torch.from_numpy(grid), **options)
    (op,) = record(F.grid_sample, torch.from_numpy(x), torch.from_numpy(grid), **options)
    assert op.op == f"aten.grid_sampler_{axes}d"
    agree(tally, result, expected, op)
    assert work_of(op._replace(op="aten.grid_sampler")) == tally.work()


@FEW
@given(align=st.booleans(), padding=st.sampled_from(PADDINGS[:2]), channels=SMALL, axes=st.integers(2, 3))
def test_gradients_of_a_bilinear_sampler(align, padding, channels, axes):
    sizes = (3, 4, 2)[:axes]
    x, grid = data(1, channels, *sizes), grids(1, *(2, 3, 2)[:axes], axes)
    t, u = torch.from_numpy(x).requires_grad_(), torch.from_numpy(grid).requires_grad_()
    out = F.grid_sample(t, u, padding_mode=padding, align_corners=align)
    g = data(*out.shape)
    out.backward(torch.from_numpy(g))
    parts = []
    for asked in ((True, False), (True, True)):
        tally = Tally()
        xs, gs, places = tally.array(x), tally.array(g), tally.array(grid)
        dx, dgrid = tally.zeros(x.shape), np.empty(grid.shape, dtype=object)
        for index in np.ndindex(grid.shape[:-1]):
            at, sums = index[1:], [Num(0.0, tally) for _ in sizes]
            start, distances = place(places[index], sizes, "bilinear", padding, align)
            products = corners(distances)
            for c, (corner, weight) in itertools.product(range(channels), products.items()):
                where = [i + s for i, s in zip(start, corner, strict=True)]
                inside = all(0 <= i < n for i, n in zip(where, sizes, strict=True))
                added = weight * gs[(0, c, *at)]
                target = (0, c, *where) if inside else (0, c, *(0 for _ in sizes))
                if inside:
                    dx[target] = dx[target] + added
                else:
                    tally["add"] += 1
                if asked[1]:
                    for axis in range(axes):
                        term = read(xs[0, c], where) * gs[(0, c, *at)]
                        for other in range(axes):
                            term = term if other == axis else term * distances[other][corner[other]]
                        sums[axis] = sums[axis] + term if corner[axis] else sums[axis] - term
            if asked[1]:
                for axis, n in enumerate(sizes):
                    slope = (n - 1) / 2 if align else n / 2
                    if padding == "border":
                        raw = unnormalised(Num(places[index][axes - 1 - axis].value, Tally()), n, align).value
                        slope = Num(slope, tally) * float(0 < raw < n - 1)
                    dgrid[(*index, axes - 1 - axis)] = sums[axis] * slope
        np.testing.assert_allclose(values(dx), t.grad, rtol=1e-7, atol=1e-9)
        if asked[1]:
            np.testing.assert_allclose(values(dgrid), u.grad, rtol=1e-7, atol=1e-9)
        options = {
            "interpolation_mode": 0, "padding_mode": PADDINGS.index(padding), "align_corners": align, "output_mask": list(asked),
        }  # fmt: skip
        op = make(f"aten.grid_sampler_{axes}d_backward", [g, x, grid], [x, grid], **options)
        assert work_of(op) == tally.work()
        parts.append(work_of(op))
    of_grid = op._replace(attrs={**op.attrs, "part": 1})
    assert parts[0] + work_of(of_grid) == parts[1]


def test_gradients_of_other_samplers_by_their_parts():
    """A cubic one adds sixteen products of three to a picture, and sixteen of four to each coordinate; a nearest one copies."""
    places, channels = 5, 3
    for padding, align in itertools.product(range(3), (True, False)):
        args = (places, channels, 2, sampling.BICUBIC, padding, align)
        forward = sampling.grid_sample(*args)
        located = forward - (sampling.MUL * 20 + sampling.ADD * 15) * (places * channels)
        of_input = sampling.grid_sample_gradient(*args, (True, False))
        assert of_input - located == (sampling.MUL * 2 + sampling.ADD) * (16 * places * channels)
        both = sampling.grid_sample_gradient(*args, (True, True))
        slopes = (sampling.MUL * 8 + sampling.ADD * 10 + sampling.MUL) * (2 * places)
        assert both - of_input == (sampling.MUL * 3 + sampling.ADD) * (2 * 16 * places * channels) + slopes
        args = (places, channels, 2, sampling.NEAREST, padding, align)
        of_input = sampling.grid_sample_gradient(*args, (True, False))
        assert of_input - sampling.grid_sample(*args) == sampling.ADD * (places * channels)
        assert sampling.grid_sample_gradient(*args, (True, True)) == of_input
        assert sampling.grid_sample_gradient(*args, (False, False)) == ZERO


def test_a_sampler_that_cannot_be_read_is_unknown():
    options = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": False}
    with pytest.raises(UnknownWork, match="at a grid of"):
        work_of(make("aten.grid_sampler_2d", [(1, 1, 4, 4), (1, 3, 3, 3)], [(1, 1, 3, 3)], **options))
    shapes = [(1, 1, 4, 4, 4), (1, 3, 3, 3, 3)]
    with pytest.raises(UnknownWork, match="over 3 axes"):
        work_of(make("aten.grid_sampler_3d", shapes, [(1, 1, 3, 3, 3)], **{**options, "interpolation_mode": 2}))


def filters(size, wanted, interpolation, align):
    """Per output of one axis its first tap and its weights, as ATen computes them."""
    step = ((size - 1) / (wanted - 1) if wanted > 1 else 0.0) if align else size / wanted
    half, wide = (0.0 if align else 0.5), max(step, 1.0)
    found = []
    for i in range(wanted):
        centre = step * (i + half)
        start = max(int(centre - interpolation / 2 * wide + half), 0)
        end = min(int(centre + interpolation / 2 * wide + half), size)
        weights = [_filter((j + start - centre + half) / wide, interpolation) for j in range(end - start)]
        found.append((start, [w / sum(weights) for w in weights]))
    return found


def _filter(x, interpolation):
    x = abs(x)
    if interpolation == 2:
        return max(1 - x, 0.0)
    a = -0.5
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _resized(tally, x, filters_, axis):
    moved = np.moveaxis(x, axis, -1)
    result = np.empty((*moved.shape[:-1], len(filters_)), dtype=object)
    for index in np.ndindex(result.shape):
        start, weights = filters_[index[-1]]
        result[index] = total([moved[(*index[:-1], start + j)] * w for j, w in enumerate(weights)])
    return np.moveaxis(result, -1, axis)


@FEW
@given(small=st.tuples(*[st.integers(2, 7)] * 2), wide=st.tuples(*[st.integers(2, 6)] * 2), cubic_=st.booleans())
def test_antialiased_resizing(small, wide, cubic_):
    """To two and more: PyTorch 2.13 gets a result of one column wrong."""
    if small == wide:
        return
    interpolation, name = (4, "bicubic") if cubic_ else (2, "bilinear")
    x = data(1, 2, *small)
    tally = Tally()
    result = tally.array(x)
    for axis in (1, 0):
        result = _resized(tally, result, filters(small[axis], wide[axis], interpolation, False), axis + 2)
    options = {"size": wide, "mode": name, "antialias": True}
    expected = F.interpolate(torch.from_numpy(x), **options)
    (op,) = record(F.interpolate, torch.from_numpy(x), **options)
    agree(tally, result, expected, op)
    # the gradient goes through the same taps, both axes at once
    taps = [sum(len(w) for _, w in filters(small[a], wide[a], interpolation, False)) for a in (0, 1)]
    attrs = {"input_size": list(x.shape), "output_size": list(wide), "align_corners": False}
    back = make(f"aten._upsample_{name}2d_aa_backward", [expected], [x], **attrs)
    assert work_of(back) == (sampling.MUL * 2 + sampling.ADD) * (2 * taps[0] * taps[1])


def test_resizing_to_the_same_size_copies():
    x = (1, 2, 4, 4)
    assert work_of(make("aten._upsample_bilinear2d_aa", [x], [x], align_corners=False)) == ZERO
