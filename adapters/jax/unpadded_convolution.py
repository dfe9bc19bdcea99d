"""Multiply-adds of a convolution without those with padding, as XLA and roofline count it: for the rules of both.

Source: GetConvolutionFlops in xla/service/hlo_cost_analysis.cc, _calculate_conv_flops in jax/experimental/roofline/rooflines.py.
"""

from __future__ import annotations

from collections.abc import Sequence


def pairs_inside(size: int, out: int, taps: int, stride: int, low: int, dilations: tuple[int, int]) -> int:
    """Pairs of an output and a tap along an axis whose element of the input is there: no padding, and no zero between two."""
    of_input, of_kernel = dilations
    found = 0
    for tap in range(taps):
        for at in range(out):
            place = at * stride - low + tap * of_kernel
            found += place % of_input == 0 and 0 <= place // of_input < size
    return found


def convolution_macs(
    shapes: Sequence[Sequence[int]],
    places: Sequence[Sequence[int]],
    pads: Sequence[Sequence[int]],
    strides: Sequence[int],
    dilations: Sequence[tuple[int, int]],
    groups: tuple[int, int],
) -> int:
    """Multiply-adds of a convolution of (lhs, rhs) to out, whose batch, features and axes are at ``places``."""
    lhs, _, out = shapes
    features, batches = groups
    products = lhs[places[0][1]] // features * out[places[2][1]] * (lhs[places[0][0]] // batches)
    for axis, stride in enumerate(strides):
        read, taps, written = (tensor[place[axis + 2]] for tensor, place in zip(shapes, places, strict=True))
        products *= pairs_inside(read, written, taps, stride, pads[axis][0], dilations[axis])
    return products
