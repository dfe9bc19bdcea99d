"""Work formulas of JAX's products: dot_general, its ragged form, and convolutions with any padding, dilation and groups."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.records import Op
from ....core.work import UnknownWork, Work, formula, prod
from ....work.contraction import dots
from ....work.shapes import attr, n_out, out_shape, shape


@formula("lax.dot_general", source="one dot product of the contracted sizes per output element: jax/_src/lax/lax.py")
def _dot_general(op: Op) -> Work:
    # dimension_numbers ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
    sizes, outputs = shape(op), n_out(op)
    contracting = attr(op, "dimension_numbers")[0][0]
    return dots(outputs, prod([sizes[axis] for axis in contracting]))


@formula(
    "lax.ragged_dot_general",
    source="the rows of every group with its own matrix: jax/_src/lax/lax.py (RaggedDotDimensionNumbers)",
)
def _ragged_dot(op: Op) -> Work:
    # (M, K) x (G, K, N) -> (M, N), or of its gradient (M, K) x (M, N) -> (G, K, N), where M is cut into the groups: each element
    # of the first meets the free sizes of the second in its own group; rows beyond the groups count like padding
    first, second = shape(op), shape(op, 1)
    dots_of, _, groups = attr(op, "ragged_dot_dimension_numbers")
    (_, contracting), (_, batch) = dots_of
    met = {*contracting, *batch, *groups}
    products = prod(first) * prod([size for axis, size in enumerate(second) if axis not in met])
    return Work(mac=products, accumulators=min(n_out(op), products))


def pairs(size: int, out: int, taps: int, stride: int, dilation: int) -> int:
    """Products along one axis: a dense window per output; where zeros stand between the elements of the input (``dilation``),
    every element is scattered onto its taps, as a transposed convolution does it. Raises UnknownWork for both at once."""
    if dilation == 1:
        return out * taps
    if stride != 1:
        raise UnknownWork("a convolution with strides over an input with zeros between its elements")
    return size * taps


@formula(
    "lax.conv_general_dilated",
    source="dense, convolution.py; with lhs_dilation transposed, convolution.transposed_convolution: jax/_src/lax/convolution.py",
)
def _conv(op: Op) -> Work:
    # lhs (B, Cin, *in) and rhs (Cout, Cin/g, *k) in the order of dimension_numbers; batch_group_count cuts B into groups
    lhs, rhs, out = shape(op), shape(op, 1), out_shape(op)
    places: Sequence[Sequence[int]] = attr(op, "dimension_numbers")
    axes = range(len(lhs) - 2)
    strides = attr(op, "window_strides")
    dilations = op.attrs.get("lhs_dilation") or [1] * len(axes)
    products = out[places[2][0]] * out[places[2][1]] * rhs[places[1][1]]
    for axis in axes:
        size, taps, wanted = (tensor[place[axis + 2]] for tensor, place in zip((lhs, rhs, out), places, strict=True))
        # _conv_general_dilated_transpose_rhs in jax/_src/lax/convolution.py: samples and features change places
        if places[0][0] > places[0][1]:  # the gradient of a kernel, which is the output
            taps, wanted = wanted, taps
        products *= pairs(size, wanted, taps, strides[axis], dilations[axis])
    return Work(mac=products, accumulators=min(prod(out), products))
