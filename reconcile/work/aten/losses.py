"""Formulas of ATen loss functions and their gradients: the work per element, then the sum or the mean.

``reduction``: 0 none, 1 mean, 2 sum. In the gradient, the host computes 1 / N, which is not counted.
"""

from __future__ import annotations

from ...core.records import Op
from ...core.work import Compute, Work, formulas
from ..elementwise import ADD, ATEN, CMP, DIV, MUL, SPECIAL, reduction
from ..shapes import attr, n_in, n_out

_KERNELS = "ATen native/cpu/BinaryOpsKernel.cpp, PointwiseOpsKernel.cpp, native/Loss.cpp"

LOSSES: dict[str, tuple[Work, str]] = {
    "mse_loss": (ADD + MUL, "(x - y) * (x - y)"),
    "smooth_l1_loss": (ADD + CMP * 2 + MUL * 2 + DIV, "z < b ? 0.5 * z * z / b : z - 0.5 * b, z = |x - y|"),
    "huber_loss": (ADD * 2 + CMP * 2 + MUL * 2, "z <= d ? 0.5 * z * z : d * (z - 0.5 * d), z = |x - y|"),
    "soft_margin_loss": (ADD + MUL + SPECIAL * 2, "log1p(exp(-x * y))"),
    "binary_cross_entropy": (
        SPECIAL * 2 + CMP * 2 + ADD * 3 + MUL * 2,
        "(y - 1) * max(log1p(-x), -100) - y * max(log(x), -100)",
    ),
    "binary_cross_entropy_with_logits": (ADD * 2 + MUL + ATEN["log_sigmoid"][0], "(1 - y) * x - log_sigmoid(x)"),
}
"""Name -> (work per element before the reduction, the expression it counts)."""

GRADIENTS: dict[str, tuple[Work, str]] = {
    "mse_loss": (ADD + MUL * 2, "2/N * (x - y) * g"),
    "smooth_l1_loss": (ADD + CMP * 2 + MUL * 2 + DIV, "z = x - y: |z| < b ? 1/N * z * g / b : +-1/N * g"),
    "huber_loss": (ADD + CMP * 2 + MUL * 2, "z = x - y: |z| < d ? 1/N * z * g : +-1/N * g * d"),
    "soft_margin_loss": (ADD * 2 + MUL * 4 + SPECIAL + DIV, "-1/N * y * z / (1 + z) * g, z = exp(-y * x)"),
    "binary_cross_entropy": (ADD * 2 + MUL * 2 + CMP + DIV, "g * (x - y) / max((1 - x) * x, eps)"),
}


def _loss(name: str) -> Compute:
    def compute(op: Op) -> Work:
        # x, y[, weight][, pos_weight]
        each, n = LOSSES[name][0], n_in(op)
        weighted = len(op.inputs) > 2 and op.given("weight")
        work = (each + MUL if weighted else each) * n
        if name.endswith("logits") and op.given("pos_weight") and len(op.inputs) > 2 + weighted:
            work += ADD * n_in(op, len(op.inputs) - 1) + (MUL * 2 + ADD) * n  # * ((w - 1) * y + 1)
        if attr(op, "reduction") == 0:
            return work
        return work + reduction(n, n_out(op), ADD) + Work(div=1 if attr(op, "reduction") == 1 else 0)

    return compute


def _gradient(name: str) -> Compute:
    def compute(op: Op) -> Work:
        # g, x, y[, weight]
        each, n = GRADIENTS[name][0], n_out(op)
        if name == "binary_cross_entropy":  # the mean divides each element's gradient
            weighted = len(op.inputs) > 3
            return (each + MUL if weighted else each) * n + Work(div=n if attr(op, "reduction") == 1 else 0)
        return each * n

    return compute


def _nll(op: Op) -> Work:
    # log probabilities (R, C) or (B, C, *), target (R,) or (B, *)[, weight (C,)]; a sum from 0 subtracts each
    rows, weighted, kind = n_in(op, 1), op.given("weight"), attr(op, "reduction")
    work = Work(add=rows, mul=rows if weighted else 0)
    if weighted and kind == 1:
        work += Work(add=max(rows - 1, 0))
    return work + Work(div=1 if kind == 1 else 0)


def _nll_gradient(op: Op) -> Work:
    # g, log probabilities, target (R,)[, weight], total weight
    rows, kind = n_in(op, 2), attr(op, "reduction")
    once = rows if kind == 0 else 1
    return Work(add=once, div=1 if kind == 1 else 0, mul=rows if op.given("weight") else 0)


formulas({
    **{name: (f"{expression}: {_KERNELS}", _loss(name)) for name, (_, expression) in LOSSES.items()},
    **{f"{name}_backward": (f"{expression}: {_KERNELS}", _gradient(name)) for name, (_, expression) in GRADIENTS.items()},
    "nll_loss_forward nll_loss2d_forward": (
        "the target's value, negated, R rows: add R; times its weight: mul R, the weights' sum: add R - 1; the mean: "
        "div 1: ATen native/LossNLL.cpp",
        _nll,
    ),
    "nll_loss_backward nll_loss2d_backward": (
        "-g at each target, over their number or weight: add 1, div 1; per row without a reduction; times the target's "
        "weight: mul R: ATen native/LossNLL.cpp",
        _nll_gradient,
    ),
}, "aten.")  # fmt: skip
