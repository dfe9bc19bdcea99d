"""The work of the backward pass of elementwise ops, softmax, norms, convolution, pooling and interpolation, term by term.

N elements, R rows of n, C channels, g the incoming gradient.

A function with a ``mask`` covers the gradients with respect to (input, weight, bias) that the mask asks for; work that
several of them share is counted once.
"""

from __future__ import annotations

from ..core.work import Work
from .convolution import convolution, filter_gradient, transposed_convolution
from .elementwise import ADD, CMP, DIV, MUL, SPECIAL

Mask = tuple[bool, bool, bool]

ELEMENTWISE: dict[str, tuple[Work, str]] = {
    "threshold": (CMP, "x > t ? g : 0, native/cpu/Activation.cpp (threshold_backward: also of relu)"),
    "hardtanh": (CMP * 2, "low < x < high ? g : 0, native/cpu/Activation.cpp (also of relu6)"),
    "leaky_relu": (CMP + MUL, "x > 0 ? g : g * slope, native/cpu/Activation.cpp"),
    "sigmoid": (MUL * 2 + ADD, "g * (1 - y) * y, native/cpu/BinaryOpsKernel.cpp"),
    "tanh": (MUL * 2 + ADD, "g * (1 - y * y), native/cpu/BinaryOpsKernel.cpp"),
    "elu": (CMP + MUL * 4 + SPECIAL, "x <= 0 ? g * a * b * exp(x * a) : g * c, native/cpu/Activation.cpp"),
    "elu_result": (CMP + MUL * 2 + ADD, "y <= 0 ? g * a * (y + b) : g * c, native/cpu/Activation.cpp"),
    "silu": (SPECIAL + MUL * 3 + ADD * 2, "g * s * (1 + x * (1 - s)), s = sigmoid(x), native/cpu/Activation.cpp"),
    "gelu": (
        MUL * 7 + ADD * 2 + SPECIAL * 2,
        "g * (0.5 * (1 + erf(x * a)) + x * (b * exp(x * x * -0.5))), native/cpu/Activation.cpp",
    ),
    "gelu_tanh": (
        MUL * 12 + ADD * 5 + SPECIAL,
        "g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (b * (1 + k3 * x^2))), t = tanh(b * (x + k * x^3)), "
        "native/cpu/Activation.cpp",
    ),
    "softplus": (
        CMP + MUL * 2 + SPECIAL + ADD + DIV,
        "x * b > t ? g : g * z / (z + 1), z = exp(x * b), native/cpu/Activation.cpp",
    ),
    "hardswish": (CMP * 2 + DIV + ADD + MUL, "x < -3 ? 0 : (x < 3 ? g * (x / 3 + 0.5) : g), native/cpu/Activation.cpp"),
    "hardsigmoid": (CMP * 2 + MUL, "-3 < x < 3 ? g * (1/6) : 0, native/cpu/Activation.cpp"),
    "native_dropout": (MUL * 2, "g * mask * scale, native/Dropout.cpp"),
    "prelu": (CMP + MUL * 2, "x > 0 ? g : g * w and x > 0 ? 0 : g * x, native/cpu/Activation.cpp"),
    "log_sigmoid": (
        CMP + ADD * 2 + MUL * 2 + DIV,
        "((x < 0) - sign * (z / (1 + z))) * g, z = exp(-|x|) kept, native/cpu/Activation.cpp",
    ),
    "shrink": (CMP * 2, "-l <= x <= l ? 0 : g, native/cpu/Activation.cpp (hardshrink and softshrink)"),
    "glu": (
        SPECIAL + ADD + MUL * 4,
        "s = sigmoid(b): g * s and (1 - s) * s * a * g, per result of the forward pass, native/GatedLinearUnit.cpp",
    ),
    "mish": (
        SPECIAL * 4 + MUL * 4 + ADD * 2,
        "g * (t + x * sigmoid(x) * (1 - t * t)), t = tanh(log1p(exp(x))), native/cpu/Activation.cpp",
    ),
    "logit": (CMP * 2 + ADD + MUL + DIV, "x < low or x > high ? 0 : g / (x * (1 - x)), native/cpu/BinaryOpsKernel.cpp"),
}
"""Name -> (work per element, the expression it counts)."""


def softmax(rows: int, n: int) -> Work:
    """(g - sum(g * y)) * y: mul Rn; add R(n-1); add Rn; mul Rn. Source: ATen native/cpu/SoftMaxKernel.cpp."""
    if rows * n == 0:
        return Work()
    return Work(mul=2 * rows * n, add=rows * (n - 1) + rows * n)


def log_softmax(rows: int, n: int) -> Work:
    """g - exp(y) * sum(g): add R(n-1); special Rn; mul Rn; add Rn. Source: ATen native/cpu/SoftMaxKernel.cpp."""
    if rows * n == 0:
        return Work()
    return Work(mul=rows * n, special=rows * n, add=rows * (n - 1) + rows * n)


def layer_norm(rows: int, n: int, parameters: int, weight: bool, mask: Mask) -> Work:
    """Of x^ = (x - mean) * rstd, times weight, plus bias; mean and rstd are those of the forward pass.

    Input or weight: x^: add Rn, mul Rn. Input: a = g * weight: mul Rn (none without weight); sum(a): add R(n-1);
    a * x^: mul Rn, summed: add R(n-1); both by n: div 2R; (a - mean(a) - x^ * mean(a * x^)) * rstd: mul Rn, add 2Rn,
    mul Rn. Weight, ``parameters`` of them: g * x^: mul Rn; summed: add Rn - parameters. Bias: add Rn - parameters.

    Source: the decomposition torch._decomp.decompositions.native_layer_norm_backward, every mean by one division.
    Group norm is the same with R = B * groups and the weight per channel.
    """
    size = rows * n
    work = Work()
    if size and (mask[0] or (mask[1] and weight)):
        work += Work(add=size, mul=size)
    if size and mask[0]:
        work += Work(mul=size if weight else 0)
        work += Work(add=2 * (size - rows) + 2 * size, mul=3 * size, div=2 * rows)
    if size and mask[1] and weight:
        work += Work(mul=size, add=size - parameters)
    if size and mask[2]:
        work += Work(add=size - parameters)
    return work


def batch_norm(elements: int, channels: int, weight: bool, training: bool, mask: Mask) -> Work:
    """Per channel, M = N / C. By the batch's statistics (training), invstd is that of the forward pass: input, weight
    or bias: sum(g): add N - C (bias alone needs no more). Input or weight: dot = sum((x - mean) * g): add N, mul N,
    add N - C. Input: k = dot * invstd * invstd / M: mul 2C, div C; mean(g): div C; s = invstd * weight: mul C (none
    without weight); ((g - mean(g)) - (x - mean) * k) * s: mul N, add 2N, mul N. Weight: dot * invstd: mul C.

    By running statistics: invstd = 1 / sqrt(var + eps) for input or weight: add C, special C; input: g * s: mul C
    (none without weight), mul N; weight: dot as above, mul C; bias: add N - C.

    Source: ATen native/cpu/batch_norm_kernel.cpp (batch_norm_cpu_backward_contiguous_impl), every intermediate computed
    once.
    """
    n, c = elements, channels
    if n == 0:
        return Work()
    for_input, for_weight, for_bias = mask[0], mask[1] and weight, mask[2]
    work = Work()
    if for_bias or (training and for_input):
        work += Work(add=n - c)
    if for_weight or (training and for_input):
        work += Work(add=n + n - c, mul=n)
    if not training and (for_input or for_weight):
        work += Work(add=c, special=c)
    if for_input:
        work += Work(mul=n + (c if weight else 0))
        if training:
            work += Work(mul=2 * c + n, div=2 * c, add=2 * n)
    if for_weight:
        work += Work(mul=c)
    return work


def convolution_gradient(x: int, g: int, weights: int, taps: int, channels: int, transposed_: bool, mask: Mask) -> Work:
    """x, g, weights: elements of the input, the incoming gradient and the weight; ``taps`` = weight elements per first dimension.

    Input: the transposed convolution of g (its products onto padding included), or of a transposed convolution the
    convolution. Weight: every product of the forward pass once, one accumulator per weight. Bias: the sum of g per
    channel, add g - channels. Source: ATen native/Convolution.cpp (_convolution_backward_nogroup), NaiveConvolution*.cpp.
    """
    work = Work()
    if mask[0]:
        work += convolution(x, taps, bias=False) if transposed_ else transposed_convolution(g, taps, x, bias=False)
    if mask[1]:
        work += filter_gradient(x if transposed_ else g, taps, weights)
    if mask[2]:
        work += Work(add=max(g - channels, 0))
    return work


def avg_pool(g: int, reads: int) -> Work:
    """Each element by its window's size: div g; added to every element of the window: add ``reads``."""
    return Work(div=g, add=reads)


def rms_norm(rows: int, n: int, weight: bool, mask: tuple[bool, bool]) -> Work:
    """Of x^ = x * rstd, times weight; rstd is that of the forward pass. Input or weight: x^: mul Rn. Input: a = g *
    weight: mul Rn (none without weight); a * x^: mul Rn, summed: add R(n-1), by n: div R; (a - x^ * that) * rstd: mul
    2Rn, add Rn. Weight: g * x^: mul Rn; summed: add Rn - n.

    Source: the derivation; the layer norm's without its mean (torch._decomp.decompositions._fused_rms_norm_backward).
    """
    size = rows * n
    for_weight = mask[1] and weight
    work = Work(mul=size if mask[0] or for_weight else 0)
    if size and mask[0]:
        work += Work(mul=3 * size + (size if weight else 0), add=size - rows + size, div=rows)
    if size and for_weight:
        work += Work(mul=size, add=size - n)
    return work


def linear_interpolation(g: int, axes: int) -> Work:
    """Each element onto 2^axes corners, each the product of one weight per axis and of g: mul axes, and added: add 1.

    Source: ATen native/cpu/UpSampleMoreKernel.cpp (cpu_upsample_linear_backward).
    """
    return (MUL * axes + ADD) * (g << axes)


def cubic_interpolation(g: int) -> Work:
    """Each element onto 16 places: g * wy * wx: mul 2, added: add 1.

    Source: ATen native/UpSampleBicubic2d.cpp (upsample_bicubic2d_backward_out_frame).
    """
    return (MUL * 2 + ADD) * (16 * g)


def weight_norm(elements: int, norms: int) -> Work:
    """Of v * (g / |v|), R norms of n elements each: s = sum(dw * v): mul N, add N - R; dg = s / |v|: div R;
    a = g / |v|: div R; b = a * dg / |v|: mul R, div R; dv = a * dw - b * v: mul 2N, add N.

    Source: ATen native/cpu/WeightNormKernel.cpp (weight_norm_backward_first_dim_kernel).
    """
    return Work(mul=3 * elements + norms, add=2 * elements - norms, div=3 * norms)
