"""The work per output element of elementwise operations, one row per operation, and the work of reductions and norms.

sub counts as add; negation is add (0 - x); abs, sign, max, min and comparisons are cmp; a clamp is one cmp per bound; exp,
log, sqrt, tanh, sigmoid, pow, rounding and the like are one special each. A select evaluates its costlier side.
"""

from __future__ import annotations

from ..core.work import Work

ADD, MUL, DIV, CMP, SPECIAL = Work(add=1), Work(mul=1), Work(div=1), Work(cmp=1), Work(special=1)

SHARED: dict[str, tuple[Work, str]] = {
    "add": (ADD, "x + y"),
    "sub": (ADD, "x - y"),
    "neg": (ADD, "0 - x"),
    "mul": (MUL, "x * y"),
    "square": (MUL, "x * x"),
    "div": (DIV, "x / y"),
    "reciprocal": (DIV, "1 / x"),
    "compare": (CMP, "one comparison"),
    "special": (SPECIAL, "one call of a transcendental or rounding function"),
    "clamp2": (CMP * 2, "min(max(x, low), high)"),
    "floordiv": (DIV + SPECIAL, "floor(x / y)"),
    "remainder": (DIV, "remainder of one division; the data-dependent correction of its sign is not counted"),
    "xlogy": (CMP + MUL + SPECIAL, "x == 0 ? 0 : x * log(y)"),
    "silu": (MUL + SPECIAL, "x * sigmoid(x)"),
    "gelu": (MUL * 3 + ADD + SPECIAL, "x * 0.5 * (1 + erf(x * sqrt(1/2)))"),
    "gelu_tanh": (MUL * 6 + ADD * 2 + SPECIAL, "0.5 * x * (1 + tanh(c * (x + k * (x*x*x))))"),
    "softsign": (CMP + ADD + DIV, "x / (1 + |x|)"),
    "leaky_relu": (CMP + MUL, "x > 0 ? x : slope * x"),
    "addcmul": (MUL + ADD, "x + y * z"),
    "addcdiv": (DIV + ADD, "x + y / z"),
}
"""Name -> (work per output element, the expression it counts)."""

ATEN: dict[str, tuple[Work, str]] = {
    "elu": (CMP + MUL * 2 + SPECIAL, "x <= 0 ? expm1(x * a) * b : x * c, native/cpu/Elu.h (selu and celu too)"),
    "softplus": (
        CMP + MUL + DIV + SPECIAL * 2,
        "x*beta > t ? x : log1p(exp(x*beta)) / beta, native/cpu/Activation.cpp",
    ),
    "hardsigmoid": (ADD + CMP * 2 + DIV, "min(max(x + 3, 0), 6) / 6, native/cpu/Activation.cpp"),
    "hardswish": (ADD + CMP * 2 + MUL + DIV, "x * min(max(x + 3, 0), 6) / 6, native/cpu/Activation.cpp"),
    "mish": (MUL + SPECIAL * 3, "x * tanh(log1p(exp(x))), native/cpu/Activation.cpp"),
    "glu": (MUL + SPECIAL, "a * sigmoid(b) on the two halves, per output element, native/cpu/Activation.cpp"),
    "log_sigmoid": (CMP * 2 + ADD * 2 + SPECIAL * 2, "min(0, x) - log1p(exp(-|x|)), native/cpu/Activation.cpp"),
    "softshrink": (CMP * 2 + ADD, "x > l ? x - l : (x < -l ? x + l : 0), native/cpu/Activation.cpp"),
    "lerp": (ADD * 2 + MUL, "x + w * (y - x), native/Lerp.h"),
    "dropout": (DIV + MUL, "x * (noise / (1 - p)), native/Dropout.cpp (_dropout_impl)"),
    "native_dropout": (MUL * 2, "x * mask * scale, native/Dropout.cpp (native_dropout_cpu)"),
    "logit": (CMP * 2 + ADD + DIV + SPECIAL, "log(x / (1 - x)), x clamped before, native/cpu/UnaryOpsKernel.cpp"),
    "cross": (MUL * 2 + ADD, "a * b - c * d, per result, native/cpu/CrossKernel.cpp"),
    "rrelu": (CMP + MUL, "x > 0 ? x : x * noise, native/Activation.cpp"),
}

TENSORFLOW: dict[str, tuple[Work, str]] = {
    "Elu": (CMP + ADD + SPECIAL, "x < 0 ? exp(x) - 1 : x, kernels/relu_op_functor.h"),
    "Selu": (CMP + ADD + MUL + SPECIAL, "x < 0 ? sa * (exp(x) - 1) : s * x, kernels/relu_op_functor.h"),
    "Softplus": (CMP * 2 + SPECIAL * 2, "too large, too small, otherwise log1p(exp(x)), kernels/softplus_op.h"),
    "SquaredDifference": (ADD + MUL, "(x - y) * (x - y), kernels/cwise_ops.h"),
    "DivNoNan": (CMP + DIV, "y == 0 ? 0 : x / y, kernels/cwise_ops.h"),
    "MulNoNan": (CMP + MUL, "y == 0 ? 0 : x * y, kernels/cwise_ops.h"),
    "Xdivy": (CMP + DIV, "x == 0 ? 0 : x / y, kernels/cwise_ops.h"),
    "RsqrtGrad": (MUL * 4, "-0.5 * (dy * y) * (y * y), kernels/cwise_ops_gradients.h"),
    "SqrtGrad": (MUL + DIV, "0.5 * dy / y, kernels/cwise_ops_gradients.h"),
    "TanhGrad": (MUL * 2 + ADD, "dy * (1 - y * y), kernels/cwise_ops_gradients.h"),
    "SigmoidGrad": (MUL * 2 + ADD, "dy * (1 - y) * y, kernels/cwise_ops_gradients.h"),
    "InvGrad": (MUL * 2 + ADD, "-dy * y * y, kernels/cwise_ops_gradients.h"),
    "ReluGrad": (CMP, "x > 0 ? dy : 0, kernels/relu_op_functor.h"),
    "Relu6Grad": (CMP * 2, "0 < x < 6 ? dy : 0, kernels/relu_op_functor.h"),
    "LeakyReluGrad": (CMP + MUL, "x > 0 ? dy : dy * slope, kernels/relu_op_functor.h"),
    "EluGrad": (CMP + ADD + MUL, "y < 0 ? dy * (y + 1) : dy, kernels/relu_op_functor.h"),
    "SeluGrad": (CMP + ADD + MUL, "y < 0 ? dy * (y + sa) : dy * s, kernels/relu_op_functor.h"),
    "SoftplusGrad": (ADD * 2 + SPECIAL + DIV, "dy / (exp(-x) + 1), kernels/softplus_op.h"),
    "SoftsignGrad": (CMP + ADD + MUL + DIV, "dy / (1 + |x|)^2, kernels/softsign_op.h"),
    "ReciprocalGrad": (MUL * 2 + ADD, "-dy * y * y, kernels/cwise_ops_gradients.h"),
}

POWER: dict[float, tuple[Work, str]] = {
    0.0: (Work(), "1"),
    1.0: (Work(), "x"),
    2.0: (MUL, "x * x"),
    3.0: (MUL * 2, "x * x * x"),
    0.5: (SPECIAL, "sqrt(x)"),
    -0.5: (SPECIAL, "rsqrt(x)"),
    -1.0: (DIV, "1 / x"),
    -2.0: (MUL + DIV, "1 / (x * x)"),
}
"""Scalar exponents that ATen does not compute with pow: native/Pow.cpp, native/cpu/PowKernel.cpp."""


def reduction(n_in: int, n_out: int, step: Work) -> Work:
    """``step`` for every element after the first of each group: N - O of them."""
    return step * max(n_in - n_out, 0)


def vector_norm(n_in: int, n_out: int, order: float) -> Work:
    """(sum |x|^p)^(1/p) per group: what happens to each element, the sum (add N - O), the root (special O).

    p = 2: square mul N, sqrt. p = 1: |x| cmp N, no root. p = 0: x != 0 cmp N, no root. p = +-inf: |x| cmp N, then
    max or min cmp N - O. Otherwise |x| cmp N, pow special N, root. Source: ATen native/cpu/ReduceOpsKernel.cpp
    (norm_kernel_tensor_iterator_impl), native/LinearAlgebra.cpp.
    """
    if order in (float("inf"), float("-inf")):
        return Work(cmp=n_in) + reduction(n_in, n_out, CMP)
    each = {2.0: MUL, 1.0: CMP, 0.0: CMP}.get(float(order), CMP + SPECIAL)
    root = Work() if order in (0, 1) else Work(special=n_out)
    return each * n_in + reduction(n_in, n_out, ADD) + root


def logsumexp(n_in: int, n_out: int) -> Work:
    """max: cmp N - O; |max| == inf, to leave such a maximum out: cmp 2O; x - max: add N; exp: special N;
    sum: add N - O; log: special O; + max: add O. Source: ATen native/ReduceOps.cpp (logsumexp_out_impl)."""
    if n_in == 0:
        return Work()
    return reduction(n_in, n_out, CMP + ADD) + Work(cmp=2 * n_out, add=n_in + n_out, special=n_in + n_out)
