"""Sizes of TensorFlow's convolutions and their gradients: as oneDNN's descriptor states them, and as matrices (im2col).

Forward, the data is the wide side and the result the narrow one, on which each position meets each tap once. The gradient of the
data, which is also the transposed convolution, has the wide side as its result; that of the filter has it as its first input.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ....core.records import Op
from ..cpu_libraries.gradient_lines import result_of, shapes_of
from ..cpu_libraries.log_lines import Product
from .matrix_sizes import Ways

FORWARD, DATA, FILTER = "forward", "backward_data", "backward_weights"
CONVOLUTIONS = {
    **dict.fromkeys(("Conv", "Conv2D", "Conv3D", "DepthwiseConv2dNative"), FORWARD),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv2DBackpropInputV2"), DATA),
    **dict.fromkeys(("Conv3DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"), DATA),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilter", "Conv3DBackpropFilterV2"), FILTER),
    "DepthwiseConv2dNativeBackpropFilter": FILTER,
}
"""The convolutions whose sizes are known, and what oneDNN calls each."""
UNPADDED = "tag:unpadded"
"""Attribute of a convolution that TensorFlow fused with the padding before it: the shape of the data before that, and the
positions that are added before the first one of each axis."""


class ConvolutionSides(NamedTuple):
    """Samples, channels and filters, groups, and the sizes of the kernel, of the wide side and of the narrow one, by axis."""

    samples: int
    channels: int
    filters: int
    groups: int
    kernel: tuple[int, ...]
    wide: tuple[int, ...]
    narrow: tuple[int, ...]


def sides_of(op: Op) -> ConvolutionSides:
    """The sizes of a convolution, whichever of its gradients it is."""
    shapes, out, kind = shapes_of(op), result_of(op), CONVOLUTIONS[op.op]
    wide, kernel, narrow = {
        FORWARD: (shapes[0], shapes[1], out),
        DATA: (out, shapes[1], shapes[-1]),
        FILTER: (shapes[0], out, shapes[-1]),
    }[kind]
    samples, channels, large = _apart(op, wide)
    _, filters, small = _apart(op, narrow)
    groups = channels if op.op.startswith("Depthwise") else channels // (kernel[-2] or 1)
    return ConvolutionSides(samples, channels, filters, groups, kernel[:-2], large, small)


def _apart(op: Op, shape: Sequence[int]) -> tuple[int, int, tuple[int, ...]]:
    """Samples, channels and the axes between them."""
    samples, *rest = shape
    return (samples, rest[0], tuple(rest[1:])) if _channels_first(op) else (samples, rest[-1], tuple(rest[:-1]))


def _channels_first(op: Op) -> bool:
    return str(op.attrs.get("data_format", "NHWC")).startswith("NC")


def _axes(op: Op, name: str, rank: int) -> list[int]:
    """An attribute that has an entry for each axis of the tensor, for the axes of the kernel."""
    values = list(op.attrs.get(name) or [1] * (rank + 2))
    return values[2:] if _channels_first(op) else values[1:-1]


def _before(op: Op, axis: int, sides: ConvolutionSides, stride: int, dilation: int) -> int:
    """Positions of padding before the first one of an axis, as TensorFlow defines SAME: an odd one comes after the last."""
    way = op.attrs.get("padding")
    if way == "EXPLICIT":
        return int(op.attrs["explicit_paddings"][2 * (axis + (2 if _channels_first(op) else 1))])
    if way != "SAME":
        return 0
    reach = (sides.narrow[axis] - 1) * stride + (sides.kernel[axis] - 1) * dilation + 1
    return max(reach - sides.wide[axis], 0) // 2


def is_described(op: Op, product: Product) -> bool:
    """Whether oneDNN's descriptor is that of the op: each size, stride, dilation and padding."""
    sides, rank = sides_of(op), len(sides_of(op).kernel)
    if not product.routine.startswith(f"convolution:{CONVOLUTIONS[op.op]}"):
        return False
    wanted = {"mb": sides.samples, "ic": sides.channels, "oc": sides.filters}
    strides, dilations = _axes(op, "strides", rank), _axes(op, "dilations", rank)
    wide, before = list(sides.wide), [_before(op, i, sides, strides[i], dilations[i]) for i in range(rank)]
    if UNPADDED in op.attrs:
        wide, before = (list(_apart(op, each)[2]) for each in op.attrs[UNPADDED])
    for i, axis in enumerate("dhw"[3 - rank :]):
        wanted |= {"i" + axis: wide[i], "o" + axis: sides.narrow[i], "k" + axis: sides.kernel[i]}
        wanted |= {"s" + axis: strides[i], "d" + axis: dilations[i] - 1, "p" + axis: before[i]}
    rest = {name: size for name, size in product.sizes.items() if name not in wanted and name != "g"}
    plain = all(size == (0 if name[0] in "dp" else 1) for name, size in rest.items())
    same = {name: product.sizes.get(name) for name in wanted} == wanted
    return plain and same and product.sizes.get("g", 1) == sides.groups


def matrices_of_convolution(op: Op) -> Ways:
    """A convolution of all samples as one product of unfolded patches for each group, or one for each sample and group."""
    sides = sides_of(op)
    patch = prod(sides.kernel) * (sides.channels // sides.groups)
    filters, positions = sides.filters // sides.groups, prod(sides.narrow)
    ways: Ways = []
    for rows, times in ((positions * sides.samples, sides.groups), (positions, sides.groups * sides.samples)):
        sizes = {
            FORWARD: (rows, filters, patch),
            DATA: (rows, patch, filters),
            FILTER: (patch, filters, rows),
        }[CONVOLUTIONS[op.op]]
        ways.append((sizes, times))
    return ways


def matrices_of_xla(op: Op) -> Ways:
    """A gradient as XLA computes it on a CPU, as a convolution forward (compiler/tf2xla/kernels/conv_op_helpers.cc).

    That of the data reads the other gradient at each position of the wide side, where most of the padding is zeros. That of a
    filter of groups takes the groups as samples, and has the products of each group with all others.
    """
    sides, kind = sides_of(op), CONVOLUTIONS[op.op]
    taps, each = prod(sides.kernel), (sides.channels // sides.groups, sides.filters // sides.groups)
    if kind == DATA:
        return [((sides.samples * prod(sides.wide), each[0], taps * each[1]), sides.groups)]
    if kind == FILTER:
        return [((taps * sides.channels, each[1], sides.samples * prod(sides.narrow) * sides.groups), 1)]
    return []
