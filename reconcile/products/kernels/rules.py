"""Table of the rules that predict, by a GPU kernel's name, how many multiply-adds it runs for an operator (witness.py).

A rule reads the kernel's name, its grid and the operator's sizes, never a count.  Each was tested against what an H100 counted
(tests/products/kernels).  A kernel without a rule has no prediction: its difference stays in the residual.
"""

from __future__ import annotations

import re

from . import attention, convolutions, recurrent, tiles
from .ncu import Launch
from .tiles import Case, Product, Rule


def _gemm_by_op(launch: Launch, case: Case) -> Product | None:
    if case.op in RECURRENT:
        return recurrent.products(launch, case)
    if case.op in ("aten.convolution", "aten.convolution_backward"):
        return convolutions.pointwise(launch, case)
    return tiles.matrix_product(launch, case)


RECURRENT = ("aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu", "aten._cudnn_rnn", "aten._cudnn_rnn_backward")

RULES: tuple[tuple[str, Rule], ...] = (
    (r"cudnn_generated.*sdpa", attention.cudnn),
    (r"fprop|dgrad|wgrad|ImplicitGemm", convolutions.implicit),
    (r"flash_(fwd|bwd_dq_dk_dv)", attention.flash),
    (r"fmha_cutlass[FB]", attention.efficient),
    (r"RNN_blockPersist_[fb]p", recurrent.persistent),
    (r"gemmSN|gemv|implicit_convolve_sgemm|conv_depthwise2d_forward", tiles.unpadded_product),
    (r"gemm|nvjet", _gemm_by_op),
)
"""Pattern of a kernel's name, and its rule: the first that matches holds."""

MATRIX_KERNELS = re.compile(
    r"gemm|gemv|nvjet|fprop|dgrad|wgrad|conv(?!ert)|fmha|flash_(fwd|bwd_dq)|sdpa|RNN_blockPersist|winograd|cutlass|ImplicitGemm"
)
"""Names of kernels that multiply matrices: their multiply-adds count, those of other kernels are element by element."""


def rule_number(launch: Launch) -> int:
    """The number of the rule of a kernel; -1 if it has none."""
    return next((i for i, (pattern, _) in enumerate(RULES) if re.search(pattern, launch.short)), -1)


def predict(launch: Launch, case: Case) -> Product | None:
    """What the rule of a kernel says; None if it has no rule, or one that does not fit these sizes."""
    number = rule_number(launch)
    return RULES[number][1](launch, case) if number >= 0 else None
