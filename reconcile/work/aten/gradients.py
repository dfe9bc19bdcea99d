"""Formulas of ATen operators of the backward pass.

An operator with an ``output_mask`` computes several gradients in one call. The trace has one record per gradient, and its
``part`` says which gradient. Work that several gradients share belongs to the first of them, so that the parts of a call add
up to the call.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.records import Op
from ...core.work import UnknownWork, Work, formula, no_arithmetic, prod
from .. import gradients, pooling
from ..elementwise import ADD, MUL
from ..gradients import Mask
from ..shapes import attr, ints, n_in, n_out, out_shape, shape

_LAST = {
    "threshold_backward": "threshold",
    "hardtanh_backward": "hardtanh",
    "leaky_relu_backward": "leaky_relu",
    "sigmoid_backward": "sigmoid",
    "tanh_backward": "tanh",
    "silu_backward": "silu",
    "softplus_backward": "softplus",
    "hardswish_backward": "hardswish",
    "hardsigmoid_backward": "hardsigmoid",
    "native_dropout_backward": "native_dropout",
    "_prelu_kernel_backward": "prelu",
    "log_sigmoid_backward": "log_sigmoid",
    "softshrink_backward": "shrink",
    "hardshrink_backward": "shrink",
    "mish_backward": "mish",
    "logit_backward": "logit",
}


def _each(row: str) -> Callable[[Op], Work]:
    return lambda op: gradients.ELEMENTWISE[row][0] * n_out(op)


for _name, _row in _LAST.items():
    formula(f"aten.{_name}", source=gradients.ELEMENTWISE[_row][1])(_each(_row))


@formula("aten.glu_backward", source=gradients.ELEMENTWISE["glu"][1])
def _glu(op: Op) -> Work:
    return gradients.ELEMENTWISE["glu"][0] * n_in(op)


@formula(
    "aten.rrelu_with_noise_backward",
    source="g * noise in training, else gradients.ELEMENTWISE leaky_relu: ATen native/Activation.cpp",
)
def _rrelu(op: Op) -> Work:
    random = bool(attr(op, "training")) and float(attr(op, "upper")) - float(attr(op, "lower")) > 1e-6
    return (MUL if random else gradients.ELEMENTWISE["leaky_relu"][0]) * n_out(op)


@formula("aten.elu_backward", source="gradients.ELEMENTWISE elu, elu_result (celu and selu too)")
def _elu(op: Op) -> Work:
    return gradients.ELEMENTWISE["elu_result" if attr(op, "is_result") else "elu"][0] * n_out(op)


@formula("aten.gelu_backward", source="gradients.ELEMENTWISE gelu, gelu_tanh: native/cpu/Activation.cpp")
def _gelu(op: Op) -> Work:
    tanh = attr(op, "approximate", "none") == "tanh"
    return gradients.ELEMENTWISE["gelu_tanh" if tanh else "gelu"][0] * n_out(op)


def _rows(op: Op) -> tuple[int, int]:
    sizes, dim = shape(op), attr(op, "dim")
    n = sizes[dim] if sizes else 1
    return (prod(sizes) // n if n else 0), n


@formula("aten._softmax_backward_data", source="gradients.softmax: ATen native/cpu/SoftMaxKernel.cpp")
def _softmax(op: Op) -> Work:
    return gradients.softmax(*_rows(op))


@formula("aten._log_softmax_backward_data", source="gradients.log_softmax: ATen native/cpu/SoftMaxKernel.cpp")
def _log_softmax(op: Op) -> Work:
    return gradients.log_softmax(*_rows(op))


def by_part(of_mask: Callable[[Op, Mask], Work]) -> Callable[[Op], Work]:
    """Turn a formula of a mask into one of a record: of the whole call, or of the gradient that ``part`` names."""

    def compute(op: Op) -> Work:
        mask = attr(op, "output_mask")
        if not isinstance(mask, (list, tuple)) or len(mask) not in (2, 3):
            raise UnknownWork(f"{op.op}: output_mask is {mask!r}, not two or three flags")
        return _of_part(of_mask, op, mask)

    return compute


def _of_part(of_mask: Callable[[Op, Mask], Work], op: Op, mask: list[bool] | tuple[bool, ...]) -> Work:
    part = op.attrs.get("part")
    if part is None:
        return of_mask(op, _first(mask, 3))
    return of_mask(op, _first(mask, part + 1)) - of_mask(op, _first(mask, part))


def _first(mask: list[bool] | tuple[bool, ...], count: int) -> Mask:
    """The mask with only its first ``count`` gradients."""
    a, b, c = (bool(wanted) and index < count for index, wanted in enumerate((*mask, False)[:3]))
    return a, b, c


@formula("aten.convolution_backward", source="gradients.convolution_gradient: ATen native/Convolution.cpp")
@by_part
def _convolution(op: Op, mask: Mask) -> Work:
    # g (B, Cout, *out), x (B, Cin, *in), weight (Cout, Cin/groups, *k); transposed: weight (Cin, Cout/groups, *k)
    weight = shape(op, 2)
    sizes = n_in(op, 1), n_in(op, 0), prod(weight), prod(weight[1:])
    return gradients.convolution_gradient(*sizes, shape(op)[1], bool(attr(op, "transposed")), mask)


@formula("aten.native_batch_norm_backward", source="gradients.batch_norm: ATen native/cpu/batch_norm_kernel.cpp")
@by_part
def _batch_norm(op: Op, mask: Mask) -> Work:
    # g, x (B, C, *), weight, running and saved statistics if given
    return gradients.batch_norm(n_in(op), shape(op)[1], op.given("weight"), bool(attr(op, "train")), mask)


@formula(
    "aten.cudnn_batch_norm_backward",
    "aten.miopen_batch_norm_backward",
    source="gradients.batch_norm by the batch's statistics, which is when PyTorch calls it: native/cudnn/BatchNorm.cpp, "
    "native/miopen/BatchNorm_miopen.cpp",
)
def _batch_norm_of_a_library(op: Op) -> Work:
    # x, g (B, C, *), weight, running and saved statistics; no mask: the kernel computes all three gradients
    return _of_part(lambda op, mask: gradients.batch_norm(n_in(op), shape(op)[1], True, True, mask), op, (True,) * 3)


@formula("aten.native_layer_norm_backward", source="gradients.layer_norm: torch._decomp.decompositions")
@by_part
def _layer_norm(op: Op, mask: Mask) -> Work:
    # g, x (..., *normalized), mean, rstd, weight, bias
    n = prod(ints(op, "normalized_shape"))
    return gradients.layer_norm(n_in(op) // n if n else 0, n, n, op.given("weight"), mask)


@formula("aten.native_group_norm_backward", source="gradients.layer_norm over groups: torch._decomp.decompositions")
@by_part
def _group_norm(op: Op, mask: Mask) -> Work:
    # g, x (B, C, *), mean, rstd, weight; R = B * groups rows
    rows = shape(op)[0] * int(attr(op, "group"))
    n = n_in(op) // rows if rows else 0
    return gradients.layer_norm(rows, n, shape(op)[1], op.given("weight"), mask)


@formula("aten._fused_rms_norm_backward", source="gradients.rms_norm: torch._decomp.decompositions")
@by_part
def _rms_norm(op: Op, mask: Mask) -> Work:
    # g, x (..., *normalized), rstd, weight
    n = prod(ints(op, "normalized_shape"))
    return gradients.rms_norm(n_in(op) // n if n else 0, n, op.given("weight"), mask[:2])


@formula(
    *("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward"),
    *("aten.adaptive_max_pool2d_backward", "aten.adaptive_max_pool3d_backward"),
    *("aten.fractional_max_pool2d_backward", "aten.fractional_max_pool3d_backward"),
    source="each element added where its maximum was, whose index is kept: ATen native/cpu/MaxPoolKernel.cpp",
)
def _max_pool(op: Op) -> Work:
    return ADD * n_in(op)


for _axes in (2, 3):

    @formula(
        f"aten.avg_pool{_axes}d_backward", source="gradients.avg_pool, dense windows: ATen native/cpu/AvgPoolKernel.cpp"
    )
    def _avg_pool(op: Op, axes: int = _axes) -> Work:
        kernel = ints(op, "kernel_size")
        return gradients.avg_pool(n_in(op), n_in(op) * prod(kernel * axes if len(kernel) == 1 else kernel))

    @formula(
        f"aten._adaptive_avg_pool{_axes}d_backward",
        source="gradients.avg_pool, the windows of pooling.adaptive_reads: ATen native/cpu/AdaptiveAvgPoolKernel.cpp",
    )
    def _adaptive_avg_pool(op: Op, axes: int = _axes) -> Work:
        small, wide = shape(op), out_shape(op)
        reads = pooling.adaptive_reads(prod(wide[:-axes]), wide[-axes:], small[-axes:])
        return gradients.avg_pool(n_in(op), reads)


@formula(
    *(f"aten.{kind}{axes}d_backward" for kind in ("upsample_nearest", "_upsample_nearest_exact") for axes in (1, 2, 3)),
    *(f"aten.{kind}_pad{axes}d_backward" for kind in ("reflection", "replication") for axes in (1, 2, 3)),
    *("aten.embedding_dense_backward", "aten.unfold_backward"),
    source="each element added to what it was a copy of, from 0: ATen native/cpu/UpSampleKernel.cpp, PaddingKernel.cpp, "
    "native/Embedding.cpp",
)
def _added_back(op: Op) -> Work:
    return ADD * n_in(op)


no_arithmetic(
    "puts the values back where they were taken from; the rest is 0",
    *(f"aten.{name}" for name in ("select_backward", "slice_backward", "diagonal_backward", "masked_scatter_backward")),
)


@formula(
    *("aten.upsample_linear1d_backward", "aten.upsample_bilinear2d_backward", "aten.upsample_trilinear3d_backward"),
    source="gradients.linear_interpolation: ATen native/cpu/UpSampleMoreKernel.cpp",
)
def _upsample(op: Op) -> Work:
    return gradients.linear_interpolation(n_in(op), len(shape(op)) - 2)


@formula("aten.upsample_bicubic2d_backward", source="gradients.cubic_interpolation: ATen native/UpSampleBicubic2d.cpp")
def _bicubic(op: Op) -> Work:
    return gradients.cubic_interpolation(n_in(op))


@formula("aten._weight_norm_interface_backward", source="gradients.weight_norm: ATen native/cpu/WeightNormKernel.cpp")
def _weight_norm(op: Op) -> Work:
    # dw (*), v (*), g with one element per norm
    return gradients.weight_norm(n_in(op), n_in(op, 2))


@formula(
    "aten._embedding_bag_backward",
    "aten._embedding_bag_dense_backward",
    source="each row added to its word's: ATen native/EmbeddingBag.cpp; a mean's share by its bag's size, a weight's by it",
)
def _embedding_bag(op: Op) -> Work:
    # g (bags, D), indices (L,); mode 0 sum: add L D; 1 mean: 1 / size: div L, mul L D, add L D; 2 max: add bags D
    (_, width), rows, mode = shape(op), n_in(op, 1), attr(op, "mode")
    if attr(op, "scale_grad_by_freq"):
        raise UnknownWork(f"{op.op} with scale_grad_by_freq: how often a word occurs is not recorded")
    if mode == 2:
        return ADD * n_in(op)
    scaled = mode == 1 or op.attrs.get("per_sample_weights", 0) is not None
    return Work(add=rows * width, mul=rows * width if scaled else 0, div=rows if mode == 1 else 0)
