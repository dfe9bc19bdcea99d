"""The work of grid sampling (an image read at arbitrary coordinates) and of antialiased resizing, with their gradients.

The coordinates and weights of a point are computed once for all channels; each channel sums its neighbours times their weights.
Neighbours outside count, as padding does in a convolution.
"""

from __future__ import annotations

from fractions import Fraction

from ..core.work import UnknownWork, Work, prod
from .elementwise import ADD, CMP, DIV, MUL, SPECIAL

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2

_CLIP = CMP * 2
_REFLECT = ADD * 3 + CMP + DIV * 2 + SPECIAL
"""|x - low|, its remainder and its number of flips by the span, and span - remainder + low."""
_PADDING = {ZEROS: Work(), BORDER: _CLIP, REFLECTION: _REFLECT + _CLIP}
_SLOPE = {ZEROS: Work(), BORDER: MUL, REFLECTION: MUL * 2 + ADD}
"""The additional work of a coordinate's gradient: its factors, and the negated sign of x - low."""
_COEFFICIENTS = MUL * 12 + ADD * 13
"""Of four taps at t: ((a + 2) x - (a + 3)) x x + 1 at t and 1 - t, ((a x - 5 a) x + 8 a) x - 4 a at t + 1 and (1 - t) + 1."""
_COEFFICIENT_SLOPES = MUL * 8 + ADD * 10
"""Of four taps at t: x = -1 - t, -t, 1 - t, 2 - t; (p x - q) x - r twice, (p x - q) x twice."""


def _coordinate(padding: int, align: bool, cubic: bool) -> Work:
    """((x + 1) / 2) (n - 1), or ((x + 1) n - 1) / 2; padded, of a cubic one each of its four taps."""
    unnormalised = ADD + DIV + MUL if align else ADD * 2 + MUL + DIV
    return unnormalised + _PADDING[padding] * (4 if cubic else 1)


def _check_mode(mode: int, padding: int, axes: int) -> None:
    if mode not in (BILINEAR, NEAREST, BICUBIC) or padding not in _PADDING or (mode == BICUBIC and axes != 2):
        raise UnknownWork(f"sampling with mode {mode} and padding {padding} over {axes} axes")


def weights(mode: int, axes: int) -> Work:
    """For one place: floor, distances and products of distances; for a cubic one, the coefficients."""
    if mode == NEAREST:
        return SPECIAL * axes
    if mode == BICUBIC:
        return (SPECIAL + ADD + _COEFFICIENTS) * axes
    return (SPECIAL + ADD * 2) * axes + MUL * ((axes - 1) << axes)


def grid_sample(places: int, channels: int, axes: int, mode: int, padding: int, align: bool) -> Work:
    """Coordinates and weights of every place, and the weighted sum of 2^axes (cubic: four times four, row by row) neighbours per
    channel. Source: ATen native/GridSampler.h, native/GridSampler.cpp, each intermediate computed once."""
    _check_mode(mode, padding, axes)
    each = {NEAREST: Work(), BILINEAR: MUL * (1 << axes) + ADD * ((1 << axes) - 1), BICUBIC: MUL * 20 + ADD * 15}[mode]
    of_place = _coordinate(padding, align, mode == BICUBIC) * axes + weights(mode, axes)
    return of_place * places + each * (places * channels)


def grid_sample_gradient(
    places: int, channels: int, axes: int, mode: int, padding: int, align: bool, mask: tuple[bool, bool]
) -> Work:
    """Of the input: g times each weight, added where the neighbour is (cubic: g cx cy). Of the grid: per axis, channel and
    neighbour value x g x the other axes' distances (cubic: the coefficients, one of them its slope), added; times the slope of
    the coordinate. Both need coordinates and weights. Source: as grid_sample (grid_sampler_2d_backward_cpu_kernel)."""
    _check_mode(mode, padding, axes)
    if not any(mask):
        return Work()
    cubic = mode == BICUBIC
    neighbours = {NEAREST: 1, BILINEAR: 1 << axes, BICUBIC: 16}[mode]
    work = (_coordinate(padding, align, cubic) * axes + weights(mode, axes)) * places
    if mask[0]:
        each = ADD if mode == NEAREST else ADD + MUL * (2 if cubic else 1)
        work += each * (neighbours * places * channels)
    if mask[1] and mode != NEAREST:
        each = ADD + MUL * (3 if cubic else axes)
        work += each * (axes * neighbours * places * channels)
        of_place = MUL + (_COEFFICIENT_SLOPES if cubic else _SLOPE[padding])
        work += of_place * (axes * places)
    return work


def taps(size: int, wanted: int, interpolation: int, align: bool, scale: float | None) -> int:
    """Elements that all outputs of one axis read: a filter over ``interpolation`` elements, as many times wider as the scale.

    Source: ATen native/cpu/UpSampleKernel.cpp (_compute_indices_min_size_weights_aa), in exact numbers.
    """
    if align:
        step = Fraction(size - 1, wanted - 1) if wanted > 1 else Fraction(0)
    else:
        step = 1 / Fraction(scale) if scale else Fraction(size, wanted)
    support = Fraction(interpolation, 2) * max(step, Fraction(1))
    half = Fraction(0) if align else Fraction(1, 2)
    total = 0
    for i in range(wanted):
        centre = step * (i + half)
        total += min(int(centre + support + half), size) - max(int(centre - support + half), 0)
    return total


def resample_antialiased(leading: int, sizes: tuple[int, ...], wanted: tuple[int, ...], reads: tuple[int, ...]) -> Work:
    """The last axis first, each output the sum of its taps times their weights: mul taps, add taps - 1. Weights are computed once
    per axis and are not counted. Source: ATen native/cpu/UpSampleKernel.cpp (separable_upsample_generic_Nd_kernel_impl)."""
    if sizes == wanted:
        return Work()
    work, now = Work(), list(sizes)
    for axis in reversed(range(len(sizes))):
        others = leading * prod(now[:axis] + now[axis + 1 :])
        work += Work(mul=others * reads[axis], add=others * (reads[axis] - wanted[axis]))
        now[axis] = wanted[axis]
    return work


def antialiased_gradient(leading: int, reads: tuple[int, ...]) -> Work:
    """Each element onto the taps of every axis: g wy wx, added. Source: ATen native/cpu/UpSampleMoreKernel.cpp
    (cpu_upsample_genNd_backward_aa)."""
    return (MUL * len(reads) + ADD) * (leading * prod(reads))
