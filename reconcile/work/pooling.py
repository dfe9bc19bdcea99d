"""The work of pooling and interpolation, from sizes alone.

A window that hangs over the edge is clipped to the input, as in the kernels: padding is neither compared nor added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.work import SINGLE_COMPONENTS, UnknownWork, Work, prod

MOST_WINDOWS = 10_000_000
"""The most windows along one axis of which each is looked at."""


@dataclass(frozen=True)
class Axis:
    """One axis of a pool: window i reads the places i * stride - before + j * dilation for j below ``taps``.

    ``size`` is the input's length, ``windows`` the output's. ``spread`` is the distance of the input's elements from each other:
    2 with one hole between any two (JAX's base_dilation).
    """

    size: int
    windows: int
    taps: int
    stride: int = 1
    before: int = 0
    dilation: int = 1
    spread: int = 1


def same_padding(size: int, windows: int, taps: int, stride: int, dilation: int) -> int:
    """The padding of both sides together that gives so many windows ("SAME")."""
    return max((windows - 1) * stride + (taps - 1) * dilation + 1 - size, 0)


def clipped_reads(leading: int, axes: Sequence[Axis]) -> tuple[int, int]:
    """(elements that all windows read inside the input, windows that read any), of ``leading`` inputs.

    A window is a box, so both are products over the axes.
    """
    reads, windows = zip((leading, leading), *map(_axis_reads, axes), strict=True)
    return prod(reads), prod(windows)


def _axis_reads(axis: Axis) -> tuple[int, int]:
    if axis.before or axis.spread > 1 or _taps_inside(axis, (axis.windows - 1) * axis.stride) < axis.taps:
        if axis.windows > MOST_WINDOWS:
            raise UnknownWork(f"a pool with {axis.windows:,} windows along one axis", SINGLE_COMPONENTS)
        starts = range(-axis.before, axis.windows * axis.stride - axis.before, axis.stride)
        found = [_taps_inside(axis, start) for start in starts]
        return sum(found), sum(map(bool, found))
    return axis.windows * axis.taps, axis.windows  # the last window lies inside, and so do all before it


def _taps_inside(axis: Axis, start: int) -> int:
    """How many elements the window that begins at ``start`` reads."""
    first = max(-(start // axis.dilation), 0)
    last = min(((axis.size - 1) * axis.spread - start) // axis.dilation, axis.taps - 1)
    if axis.spread == 1:
        return max(last - first + 1, 0)
    return sum((start + tap * axis.dilation) % axis.spread == 0 for tap in range(first, last + 1))


def max_pool(reads: int, windows: int) -> Work:
    """The largest of what each window reads: cmp reads - windows."""
    return Work(cmp=reads - windows)


def avg_pool(reads: int, windows: int) -> Work:
    """The sum of what each window reads, divided: add reads - windows, div windows."""
    return Work(add=reads - windows, div=windows)


def adaptive_reads(leading: int, in_sizes: tuple[int, ...], out_sizes: tuple[int, ...]) -> int:
    """Elements read by all adaptive windows: leading * prod over the axes of the summed window lengths.

    Window i of an axis runs from floor(i * in / out) to ceil((i + 1) * in / out): ATen native/AdaptivePooling.h
    (start_index, end_index). Windows overlap where out does not divide in.
    """
    total = leading
    for size, wanted in zip(in_sizes, out_sizes, strict=True):
        total *= sum(-((-(i + 1) * size) // wanted) - (i * size) // wanted for i in range(wanted))
    return total


def linear_interpolation(outputs: int, axes: int) -> Work:
    """Per output element, axis by axis: a*wa + b*wb on 2^(axes-1), ..., 2, 1 pairs: mul 2(2^axes - 1), add 2^axes - 1.

    Indices and weights are computed once per axis and are not counted.
    Source: ATen native/cpu/UpSampleKernel.cpp (Interpolate<n>).
    """
    pairs = 2**axes - 1
    return Work(mul=2 * pairs * outputs, add=pairs * outputs)


def cubic_interpolation(outputs: int) -> Work:
    """Two axes of four taps: (4 rows + 1) times 4 mul, 3 add. Source: ATen native/cpu/UpSampleKernel.cpp."""
    return Work(mul=20 * outputs, add=15 * outputs)


def lerp_bilinear(outputs: int) -> Work:
    """top = tl + (tr - tl)*x, bottom likewise, top + (bottom - top)*y: add 6, mul 3 per output element.

    Source: TensorFlow kernels/image/resize_bilinear_op.cc (compute_lerp).
    """
    return Work(add=6 * outputs, mul=3 * outputs)
