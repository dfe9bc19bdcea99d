"""Formulas of ATen operators of the backward pass, without those of losses (losses.py), attention and recurrent layers
(fused_gradients.py), distances (distances.py) and grid samplers (sampling.py).

An operator with an ``output_mask`` computes several gradients in one call. The trace has one record per gradient, and its
``part`` says which gradient. Work that several gradients share belongs to the first of them, so that the parts of a call add
up to the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.records import Op
from ...core.work import Compute, UnknownWork, Work, formulas, no_arithmetic, prod
from .. import gradients
from ..common_formulas import per_input, per_output
from ..elementwise import ADD, MUL
from ..gradients import Mask
from ..shapes import attr, n_in, n_out, normalized_rows, out_shape, rows_along, shape
from .windows import adaptive_windows, windows


def _rrelu(op: Op) -> Work:
    random = bool(attr(op, "training")) and float(attr(op, "upper")) - float(attr(op, "lower")) > 1e-6
    return (MUL if random else gradients.ELEMENTWISE["leaky_relu"][0]) * n_out(op)


def _gelu(op: Op) -> Work:
    tanh = attr(op, "approximate", "none") == "tanh"
    return gradients.ELEMENTWISE["gelu_tanh" if tanh else "gelu"][0] * n_out(op)


def by_part(of_mask: Callable[[Op, Mask], Work], flags: tuple[bool, ...] | None = None) -> Compute:
    """Turn a formula of a mask into one of a record: of the whole call, or of the gradient that ``part`` names.

    The mask is the record's ``output_mask``, unless ``flags`` say which gradients the operator always computes.
    """

    def compute(op: Op) -> Work:
        mask = flags or attr(op, "output_mask")
        if not isinstance(mask, (list, tuple)) or len(mask) not in (2, 3):
            raise UnknownWork(f"{op.op}: output_mask is {mask!r}, not two or three flags")
        part = op.attrs.get("part")
        if part is None:
            return of_mask(op, _first(mask, 3))
        return of_mask(op, _first(mask, part + 1)) - of_mask(op, _first(mask, part))

    return compute


def _first(mask: Sequence[bool], count: int) -> Mask:
    """The mask with only its first ``count`` gradients."""
    a, b, c = (bool(wanted) and index < count for index, wanted in enumerate((*mask, False)[:3]))
    return a, b, c


def _convolution(op: Op, mask: Mask) -> Work:
    # g (B, Cout, *out), x (B, Cin, *in), weight (Cout, Cin/groups, *k); transposed: weight (Cin, Cout/groups, *k)
    weight = shape(op, 2)
    sizes = n_in(op, 1), n_in(op, 0), prod(weight), prod(weight[1:])
    return gradients.convolution_gradient(*sizes, shape(op)[1], bool(attr(op, "transposed")), mask)


def _batch_norm(op: Op, mask: Mask) -> Work:
    # g, x (B, C, *), weight, running and saved statistics if given
    return gradients.batch_norm(n_in(op), shape(op)[1], op.given("weight"), bool(attr(op, "train")), mask)


def _group_norm(op: Op, mask: Mask) -> Work:
    # g, x (B, C, *), mean, rstd, weight; R = B * groups rows
    rows = shape(op)[0] * int(attr(op, "group"))
    n = n_in(op) // rows if rows else 0
    return gradients.layer_norm(rows, n, shape(op)[1], op.given("weight"), mask)


def _layer_norm(op: Op, mask: Mask) -> Work:
    # g, x (..., *normalized), mean, rstd, weight, bias
    rows, n = normalized_rows(op)
    return gradients.layer_norm(rows, n, n, op.given("weight"), mask)


def _adaptive_avg_pool(op: Op) -> Work:
    return gradients.avg_pool(n_in(op), adaptive_windows(op, out_shape(op), shape(op))[0])


def _embedding_bag(op: Op) -> Work:
    # g (bags, D), indices (L,); mode 0 sum: add L D; 1 mean: 1 / size: div L, mul L D, add L D; 2 max: add bags D
    (_, width), rows, mode = shape(op), n_in(op, 1), attr(op, "mode")
    if attr(op, "scale_grad_by_freq"):
        raise UnknownWork(f"{op.op} with scale_grad_by_freq: how often a word occurs is not recorded")
    if mode == 2:
        return ADD * n_in(op)
    scaled = mode == 1 or op.attrs.get("per_sample_weights", 0) is not None
    return Work(add=rows * width, mul=rows * width if scaled else 0, div=rows if mode == 1 else 0)


_SAME = """threshold hardtanh leaky_relu sigmoid tanh silu softplus hardswish hardsigmoid native_dropout log_sigmoid mish logit"""
_ROWS = {
    **{name: name for name in _SAME.split()},
    "_prelu_kernel": "prelu",
    "softshrink": "shrink",
    "hardshrink": "shrink",
}
"""The operators of rows of gradients.ELEMENTWISE, without ``_backward``."""

formulas({
    f"{name}_backward": (expression, per_output(each))
    for name, row in _ROWS.items()
    for each, expression in [gradients.ELEMENTWISE[row]]
}, "aten.")  # fmt: skip
formulas({
    "glu_backward": (gradients.ELEMENTWISE["glu"][1], per_input(gradients.ELEMENTWISE["glu"][0])),
    "rrelu_with_noise_backward": (
        "g * noise in training, else gradients.ELEMENTWISE leaky_relu: ATen native/Activation.cpp", _rrelu
    ),
    "elu_backward": (
        "gradients.ELEMENTWISE elu, elu_result (celu and selu too)",
        lambda op: gradients.ELEMENTWISE["elu_result" if attr(op, "is_result") else "elu"][0] * n_out(op),
    ),
    "gelu_backward": ("gradients.ELEMENTWISE gelu, gelu_tanh: native/cpu/Activation.cpp", _gelu),
    "_softmax_backward_data": (
        "gradients.softmax: ATen native/cpu/SoftMaxKernel.cpp",
        lambda op: gradients.softmax(*rows_along(op, attr(op, "dim"))),
    ),
    "_log_softmax_backward_data": (
        "gradients.log_softmax: ATen native/cpu/SoftMaxKernel.cpp",
        lambda op: gradients.log_softmax(*rows_along(op, attr(op, "dim"))),
    ),
    "convolution_backward": ("gradients.convolution_gradient: ATen native/Convolution.cpp", by_part(_convolution)),
    "native_batch_norm_backward": (
        "gradients.batch_norm: ATen native/cpu/batch_norm_kernel.cpp", by_part(_batch_norm)
    ),
    # x, g (B, C, *), weight, running and saved statistics; no mask: the kernel computes all three gradients
    "cudnn_batch_norm_backward miopen_batch_norm_backward": (
        "gradients.batch_norm by the batch's statistics, which is when PyTorch calls it: native/cudnn/BatchNorm.cpp, "
        "native/miopen/BatchNorm_miopen.cpp",
        by_part(lambda op, mask: gradients.batch_norm(n_in(op), shape(op)[1], True, True, mask), (True, True, True)),
    ),
    "native_layer_norm_backward": ("gradients.layer_norm: torch._decomp.decompositions", by_part(_layer_norm)),
    "native_group_norm_backward": (
        "gradients.layer_norm over groups: torch._decomp.decompositions", by_part(_group_norm)
    ),
    "_fused_rms_norm_backward": (  # g, x (..., *normalized), rstd, weight
        "gradients.rms_norm: torch._decomp.decompositions",
        by_part(lambda op, mask: gradients.rms_norm(*normalized_rows(op), op.given("weight"), mask[:2])),
    ),
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward "
    "adaptive_max_pool3d_backward fractional_max_pool2d_backward fractional_max_pool3d_backward": (
        "each element added where its maximum was, whose index is kept: ATen native/cpu/MaxPoolKernel.cpp", per_input(ADD)
    ),
    "avg_pool2d_backward avg_pool3d_backward": (
        "gradients.avg_pool, windows clipped to the input: ATen native/cpu/AvgPoolKernel.cpp",
        lambda op: gradients.avg_pool(n_in(op), windows(op, out_shape(op), shape(op))[0]),
    ),
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward": (
        "gradients.avg_pool, the windows of pooling.adaptive_reads: ATen native/cpu/AdaptiveAvgPoolKernel.cpp",
        _adaptive_avg_pool,
    ),
    " ".join(
        f"{kind}{axes}d_backward"
        for kind in ("upsample_nearest", "_upsample_nearest_exact", "reflection_pad", "replication_pad")
        for axes in (1, 2, 3)
    ) + " embedding_dense_backward unfold_backward": (
        "each element added to what it was a copy of, from 0: ATen native/cpu/UpSampleKernel.cpp, PaddingKernel.cpp, "
        "native/Embedding.cpp",
        per_input(ADD),
    ),
    "upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward": (
        "gradients.linear_interpolation: ATen native/cpu/UpSampleMoreKernel.cpp",
        lambda op: gradients.linear_interpolation(n_in(op), len(shape(op)) - 2),
    ),
    "upsample_bicubic2d_backward": (
        "gradients.cubic_interpolation: ATen native/UpSampleBicubic2d.cpp",
        lambda op: gradients.cubic_interpolation(n_in(op)),
    ),
    "_weight_norm_interface_backward": (  # dw (*), v (*), g with one element per norm
        "gradients.weight_norm: ATen native/cpu/WeightNormKernel.cpp",
        lambda op: gradients.weight_norm(n_in(op), n_in(op, 2)),
    ),
    "_embedding_bag_backward _embedding_bag_dense_backward": (
        "each row added to its word's: ATen native/EmbeddingBag.cpp; a mean's share by its bag's size, a weight's by it",
        _embedding_bag,
    ),
}, "aten.")  # fmt: skip

no_arithmetic(
    "puts the values back where they were taken from; the rest is 0",
    *(f"aten.{name}" for name in ("select_backward", "slice_backward", "diagonal_backward", "masked_scatter_backward")),
)
