"""The work of softmax, means, variances and normalisations, and of the gradients of TensorFlow's batch norm, term by term.

N elements, R rows of n, C channels; integers only.
"""

from __future__ import annotations

from ..core.work import Work


def softmax(rows: int, n: int) -> Work:
    """max: cmp R(n-1); x - max: add Rn; exp: special Rn; sum: add R(n-1); division: div Rn.

    Source: ATen native/cpu/SoftMaxKernel.cpp, TensorFlow kernels/softmax_op_functor.h.
    """
    if rows * n == 0:
        return Work()
    return Work(cmp=rows * (n - 1), add=rows * n + rows * (n - 1), special=rows * n, div=rows * n)


def log_softmax(rows: int, n: int) -> Work:
    """max: cmp R(n-1); x - max: add Rn; exp: special Rn; sum: add R(n-1); log: special R; minus log: add Rn.

    Source: ATen native/cpu/SoftMaxKernel.cpp (log_softmax), TensorFlow softmax_op_functor.h with log=true.
    """
    if rows * n == 0:
        return Work()
    return Work(cmp=rows * (n - 1), add=2 * rows * n + rows * (n - 1), special=rows * n + rows)


def safe_softmax(rows: int, n: int) -> Work:
    """Softmax, and the test x == -inf of every element that decides which rows are all masked: cmp Rn.

    Source: ATen native/transformers/attention.cpp (_safe_softmax: softmax, eq -inf, all, where).
    """
    return softmax(rows, n) + Work(cmp=rows * n)


def mean(n_in: int, n_out: int) -> Work:
    """Sum: add N - O; division by the count: div O."""
    return Work(add=max(n_in - n_out, 0), div=n_out)


def variance(n_in: int, n_out: int) -> Work:
    """Two passes: mean (add N - O, div O); x - mean: add N; square: mul N; sum: add N - O; by the count: div O.

    The definition; kernels use Welford's update or this, to the same result.
    """
    return mean(n_in, n_out) + Work(add=n_in, mul=n_in) + mean(n_in, n_out)


def layer_norm(rows: int, n: int, weight: bool, bias: bool) -> Work:
    """Mean add R(n-1) div R; centre add Rn; square mul Rn; variance add R(n-1) div R; eps add R; rsqrt special R;
    scale mul Rn; weight mul Rn; bias add Rn.

    Source: the decomposition torch._refs.native_layer_norm (var_mean, rsqrt, sub, mul, mul, add), its centring shared
    between the variance and the output. Group norm is the same with R = B*groups, n = C/groups * spatial
    (the definition: ATen folds its affine part into one scale and shift per channel).
    """
    size = rows * n
    if size == 0:
        return Work()
    return variance(size, rows) + Work(
        add=rows + (size if bias else 0), special=rows, mul=size + (size if weight else 0)
    )


def rms_norm(rows: int, n: int, weight: bool) -> Work:
    """Square mul Rn; mean add R(n-1) div R; eps add R; rsqrt special R; scale mul Rn; weight mul Rn.

    Source: the decomposition torch._decomp / ATen native/layer_norm.cpp rms_norm_composite.
    """
    if rows * n == 0:
        return Work()
    return Work(mul=2 * rows * n, add=rows, special=rows) + mean(rows * n, rows) + Work(mul=rows * n if weight else 0)


def batch_norm_inference(elements: int, channels: int, weight: bool) -> Work:
    """Per channel, once: var + eps: add C; 1/sqrt: special C; alpha = weight * invstd: mul C (none without weight);
    beta = bias - mean * alpha: mul C, add C (without a bias, 0 - mean * alpha: the same).
    Per element: x * alpha + beta: mul N, add N.

    Source: ATen native/cpu/batch_norm_kernel.cpp (batch_norm_cpu_collect_linear_and_constant_terms). Used for
    TensorFlow's fused op as well, whose Eigen kernel centres x first (add 2N): one definition for both frameworks.
    """
    c = channels
    return Work(add=2 * c + elements, special=c, mul=c * weight + c + elements)


def batch_norm_training(elements: int, channels: int, weight: bool, running: bool) -> Work:
    """Variance per channel (two passes); then as in inference; running statistics: for mean and variance
    momentum * new + (1 - momentum) * old: mul 2C, add C each, and the unbiased variance: div C.

    Source: ATen native/Normalization.cpp (batch_norm_cpu_update_stats_template), batch_norm_kernel.cpp.
    """
    c = channels
    update = Work(mul=4 * c, add=2 * c, div=c) if running else Work()
    return variance(elements, c) + batch_norm_inference(elements, c, weight) + update


def batch_norm_inference_gradient(elements: int, channels: int) -> Work:
    """Of a batch norm that used its running statistics. Offset: sum(dy): add N - C. Scale: sum(dy * (x - mean)) times
    1/sqrt(var + eps): add N, mul N, add N - C; add C, special C; mul C. Input: dy times scale / sqrt(var + eps):
    mul C, mul N.

    Source: TensorFlow core/kernels/fused_batch_norm_op.cc (FusedBatchNormFreezeGrad).
    """
    n, c = elements, channels
    return Work(add=2 * (n - c) + n + c, special=c, mul=2 * n + 2 * c)


def batch_norm_training_gradient(elements: int, channels: int) -> Work:
    """Of a batch norm that used its batch's statistics, N elements in C channels of M = N / C.

    invstd: add C, special C. xc = x - mean: add N. Scale: sum(dy * (xc * invstd)): mul 2N, add N - C. Offset: sum(dy):
    add N - C. Input: scale * invstd * (dy - mean(dy) - xc * (invstd^2 * sum(dy * xc) / M)): the mean by 1 / M: mul C;
    dy - mean: add N; dy * xc: mul N; sum: add N - C; / M: div C; coefficients: mul 3C; per element mul 2N, add N.

    Source: TensorFlow core/kernels/fused_batch_norm_op.cc (FusedBatchNormGrad on the CPU), every intermediate computed
    once (the kernel's Eigen expressions may compute the centring again).
    """
    n, c = elements, channels
    return Work(add=c + 3 * n + 3 * (n - c), special=c, mul=5 * n + 4 * c, div=c)
