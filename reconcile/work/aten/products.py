"""Formulas of ATen matrix products, convolutions and einsum."""

from __future__ import annotations

from ...core.records import ELEMENTWISE, Op
from ...core.work import Work, formulas, prod
from ..common_formulas import per_output
from ..contraction import dots, einsum, scale_product
from ..convolution import convolution, taps_torch, transposed_convolution
from ..elementwise import MUL, SHARED
from ..shapes import attr, ints, n_in, n_out, shape

_DOT_SOURCE = "one dot product of K terms per output element: ATen native/LinearAlgebra.cpp"
_CONV_SOURCE = "dense convolution, convolution.py: ATen native/Convolution.cpp"


def _multiply_groups(op: Op) -> Work:
    # (S, K) x (G, K, N) -> (S, N); (G, M, K) x (K, S) -> (M, S); (G, M, K) x (G, K, N) -> (G, M, N);
    # (M, S) x (S, N) -> (G, M, N), where S is cut into the groups: every output element sums its group's part
    first, second = shape(op), shape(op, 1)
    bias = Work(add=n_out(op) if op.given("bias") else 0)
    if len(first) == len(second) == 2:
        return Work(mac=first[0] * prod(second), accumulators=n_out(op)) + bias
    return dots(n_out(op), first[-1]) + bias


def _multiply_scaled(op: Op) -> Work:
    return scale_product(n_out(op), op.attrs.get("beta", 1), op.attrs.get("alpha", 1))


def _addmm(op: Op) -> Work:
    # self, (..., M, K), (..., K, N)
    return dots(n_out(op), shape(op, 1)[-1]) + _multiply_scaled(op)


def _addmm_activation(op: Op) -> Work:
    return _addmm(op) + SHARED["gelu" if op.attrs.get("use_gelu") else "compare"][0] * n_out(op)


def _addbmm(op: Op) -> Work:
    # self, (B, M, K), (B, K, N) -> (M, N): the first of the B additions is onto beta * self
    batch, _, k = shape(op, 1)
    beta, alpha = op.attrs.get("beta", 1), op.attrs.get("alpha", 1)
    added = max(batch - 1, 0) * n_out(op)
    return (
        dots(batch * n_out(op), k)
        + scale_product(n_out(op), beta, 1)
        + Work(add=added, mul=0 if alpha == 1 else batch * n_out(op))
    )


def _contract(op: Op, k: int) -> Work:
    """Each output element of ``k`` terms: a dot product, or products and sums element by element."""
    return Work(mul=k, add=max(k - 1, 0)) * n_out(op) if op.attrs.get(ELEMENTWISE) else dots(n_out(op), k)


def _tensordot(op: Op) -> Work:
    """K is the product of the contracted sizes that both operands have; of the others, the longer is summed to 1."""
    axes = [
        (i, j, shape(op)[i], shape(op, 1)[j])
        for i, j in zip(ints(op, "dims_self"), ints(op, "dims_other"), strict=True)
    ]
    first = n_in(op) // max(prod([own for _, _, own, other in axes if other == 1]), 1)
    second = n_in(op, 1) // max(prod([other for _, _, own, other in axes if own == 1]), 1)
    sums = Work(add=max(n_in(op) - first, 0) + max(n_in(op, 1) - second, 0))
    return sums + _contract(op, prod([own for _, _, own, other in axes if own == other]))


def _einsum(op: Op) -> Work:
    shapes = [shape(op, i) for i in range(len(op.inputs))]
    return einsum(str(attr(op, "equation")), shapes, path=ints(op, "path") if op.attrs.get("path") else ())


def _bilinear(op: Op) -> Work:
    # x1 (..., I), W (O, I, J), x2 (..., J), rows R: x1 @ W[o]: R*O*J dot products of I; . x2: R*O dot products of J;
    # each added to the zeroed output: add R*O; bias: add R*O
    rows, (o, i, j) = prod(shape(op, 0)[:-1]), shape(op, 2)
    return dots(rows * o * j, i) + dots(rows * o, j) + Work(add=rows * o * (2 if len(op.inputs) > 3 else 1))


def _trilinear(op: Op) -> Work:
    # three tensors, without the dimensions of expand1, 2 and 3; for every index of unroll_dim: the product of the first two,
    # summed over the dimensions of sumdim that the third lacks, then times the third, summed over the rest, then added to
    # the output
    unrolled, summed = int(attr(op, "unroll_dim", 1)), set(ints(op, "sumdim"))
    sizes: dict[int, int] = {}
    dims: list[list[int]] = []
    for index in range(3):
        lacks = ints(op, f"expand{index + 1}")
        dims.append([d for d in range(len(shape(op, index)) + len(lacks)) if d not in lacks])
        sizes.update(zip(dims[index], shape(op, index), strict=True))
    first, second, third = ([d for d in axes if d != unrolled] for axes in dims)
    both = [d for d in sizes if d in {*first, *second} and (d in third or d not in summed)]
    result = [d for d in sizes if d != unrolled and d not in summed]
    each = _pair(first, second, both, sizes) + _pair(both, third, result, sizes)
    return (each + Work(add=prod([sizes[d] for d in result]))) * sizes[unrolled]


def _pair(a: list[int], b: list[int], out: list[int], sizes: dict[int, int]) -> Work:
    """A product of two tensors with these dimensions, summed over those that the output lacks."""
    equation = "".join(
        [*map(_letter, a), ",", *map(_letter, b), "->", *map(_letter, [d for d in out if d in {*a, *b}])]
    )
    return einsum(equation, [tuple(sizes[d] for d in axes) for axes in (a, b)])


def _letter(dimension: int) -> str:
    return chr(ord("a") + dimension)


def _conv(op: Op) -> Work:
    # x (B, Cin, *in), weight (Cout, Cin/g, *k), bias (Cout,) if given
    return convolution(n_out(op), taps_torch(shape(op, 1)), len(op.inputs) > 2)


def _conv_transpose(op: Op) -> Work:
    # x (B, Cin, *in), weight (Cin, Cout/g, *k), bias (Cout,) if given
    return transposed_convolution(n_in(op), taps_torch(shape(op, 1)), n_out(op), len(op.inputs) > 2)


formulas({
    "mm bmm matmul mv dot vdot": (  # (..., K) x (..., K, N), (..., K) x (K,) -> outputs * K
        _DOT_SOURCE, lambda op: dots(n_out(op), shape(op)[-1])
    ),
    "_grouped_mm": (f"{_DOT_SOURCE}; the rows of every group with its own matrix: native/GroupedMMUtils.h", _multiply_groups),
    "linear mkldnn_linear": (  # (..., K) x (N, K) -> (..., N)
        f"{_DOT_SOURCE}, native/Linear.cpp, native/mkldnn/Linear.cpp; one add per output element for the bias",
        lambda op: dots(n_out(op), shape(op, 1)[-1]) + Work(add=n_out(op) if len(op.inputs) > 2 else 0),
    ),
    "addmm baddbmm addmv": (f"{_DOT_SOURCE}; contraction.scale_product for self, beta and alpha", _addmm),
    "_addmm_activation": (
        f"{_DOT_SOURCE}; relu or (use_gelu) erf-gelu on the result: addmm_activation_out_cpu", _addmm_activation
    ),
    "addbmm": (f"{_DOT_SOURCE} per batch, each added onto the result (native/LinearAlgebra.cpp addbmm_impl_)", _addbmm),
    "addr": (
        "beta * self + alpha * x * y^T: ATen native/LinearAlgebra.cpp",
        lambda op: Work(mul=n_out(op)) + _multiply_scaled(op),
    ),
    "outer ger": ("x * y^T, one multiply per output element: ATen native/LinearAlgebra.cpp", per_output(MUL)),
    "inner": (
        f"{_DOT_SOURCE}, or (tag:elementwise) products and a sum; x * y of a number: native/LinearAlgebra.cpp (inner)",
        lambda op: _contract(op, shape(op)[-1]) if shape(op) and shape(op, 1) else MUL * n_out(op),
    ),
    "tensordot": (
        f"{_DOT_SOURCE}, or (tag:elementwise) products and a sum; an axis that meets one of size 1 is summed first: "
        "native/Linear.cpp",
        _tensordot,
    ),
    "einsum": ("contraction.einsum: ATen native/Linear.cpp", _einsum),
    "bilinear": ("x1^T W x2 as ATen native/Linear.cpp runs it: _trilinear, unrolled over the features", _bilinear),
    "_trilinear": ("of bilinear and its gradients: ATen native/Linear.cpp (_trilinear)", _trilinear),
    """conv1d conv2d conv3d _convolution_mode mkldnn_convolution cudnn_convolution miopen_convolution
    miopen_depthwise_convolution _slow_conv2d_forward thnn_conv2d _conv_depthwise2d conv_depthwise3d slow_conv3d
    slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d""": (_CONV_SOURCE, _conv),
    """conv_transpose1d conv_transpose2d conv_transpose3d cudnn_convolution_transpose miopen_convolution_transpose
    slow_conv_transpose2d slow_conv_transpose3d""": (
        "transposed convolution, convolution.py: ATen native/NaiveConvolutionTranspose2d.cpp", _conv_transpose
    ),
    "convolution _convolution convolution_overrideable": (
        f"{_CONV_SOURCE}, or transposed by its argument",
        lambda op: _conv_transpose(op) if attr(op, "transposed") else _conv(op),
    ),
    "conv_tbc": (  # x (T, B, Cin), weight (k, Cin, Cout), bias (Cout,)
        "ATen native/ConvolutionTBC.cpp", lambda op: convolution(n_out(op), prod(shape(op, 1)[:-1]), bias=True)
    ),
}, "aten.")  # fmt: skip
