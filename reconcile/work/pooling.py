"""The work of pooling and interpolation, from sizes alone. Windows are dense: padding counts, as in convolutions."""

from __future__ import annotations

from ..core.work import Work


def max_pool(outputs: int, window: int) -> Work:
    """The maximum of ``window`` values per output element: cmp O(k-1)."""
    return Work(cmp=outputs * max(window - 1, 0))


def avg_pool(outputs: int, window: int) -> Work:
    """Sum of ``window`` values, divided: add O(k-1), div O."""
    return Work(add=outputs * max(window - 1, 0), div=outputs)


def adaptive_reads(leading: int, in_sizes: tuple[int, ...], out_sizes: tuple[int, ...]) -> int:
    """Elements read by all adaptive windows: leading * prod over the axes of the summed window lengths.

    Window i of an axis runs from floor(i * in / out) to ceil((i + 1) * in / out): ATen native/AdaptivePooling.h
    (start_index, end_index). Windows overlap where out does not divide in.
    """
    total = leading
    for size, wanted in zip(in_sizes, out_sizes, strict=True):
        total *= sum(-((-(i + 1) * size) // wanted) - (i * size) // wanted for i in range(wanted))
    return total


def adaptive_avg(reads: int, outputs: int) -> Work:
    """Sum: add reads - O; by the window's size: div O."""
    return Work(add=reads - outputs, div=outputs)


def adaptive_max(reads: int, outputs: int) -> Work:
    """cmp reads - O."""
    return Work(cmp=reads - outputs)


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
