"""Formulas of ATen operators on lists of tensors (``_foreach_*``), and of fused optimiser steps (``_fused_*``).

A foreach operator does for each tensor what the operator on one tensor does: ATen native/ForeachOpsKernels.cpp.  A record's
outputs are the list of results; for an operator that works in place, the list that it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.records import Op
from ...core.work import ZERO, Compute, Work, find, formulas, no_arithmetic
from .. import elementwise
from ..common_formulas import unknown_work_formula
from ..contraction import dots
from ..elementwise import ADD, CMP, DIV, MUL, SPECIAL
from ..shapes import attr, n_in, n_out, shape

_SOURCE_OF_ONE = "for each tensor of the list, what the operator of one does: ATen native/ForeachOpsKernels.cpp"

_OF_ONE = """abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac lerp
lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc"""
_LISTED = {"scalars": "value", "exponent": "exponent"}
"""Arguments with a number for each tensor, and their names in the operator on one tensor."""

no_arithmetic("copies or moves values, for each tensor of the list", *map("aten._foreach_{}".format, ("clone", "copy")))
no_arithmetic("fills with zeros, each tensor of the list", "aten._foreach_zero")


def _each(one: Callable[[Op, int], Work]) -> Compute:
    """The sum of ``one`` over the results, by their indices; there is at least one tensor in a list."""

    def compute(op: Op) -> Work:
        n_out(op)
        return sum((one(op, index) for index in range(len(op.outputs))), ZERO)

    return compute


def _attrs(op: Op, index: int) -> dict[str, Any]:
    """The arguments of the operator on this tensor alone."""
    found = dict(op.attrs)
    for listed, name in _LISTED.items():
        value = found.get(listed)
        if isinstance(value, list):
            found[name] = value[index]
    if len(op.inputs) == 3 * len(op.outputs) + 1:  # addcmul and addcdiv with a tensor of numbers
        found["value"] = "of a tensor"
    return found


def _of_one(op: Op, index: int) -> Work:
    of_one = find("aten." + op.op[len("aten._foreach_") :])
    assert of_one is not None
    return of_one.compute(op._replace(op=of_one.op, outputs=(op.outputs[index],), attrs=_attrs(op, index)))


def _norm(op: Op, index: int) -> Work:
    return elementwise.vector_norm(n_in(op, index), n_out(op, index), float(op.attrs.get("ord", 2)))


def _prepare_gradient(op: Op, decayed: Work) -> Work:
    """For one element of a gradient, before the step: unscaling, negation, weight decay (``decayed``)."""
    work = (DIV if op.given("grad_scale") else ZERO) + (ADD if attr(op, "maximize") else ZERO)
    return work + decayed if attr(op, "weight_decay") else work


def _adam(op: Op, index: int) -> Work:
    each = _prepare_gradient(op, MUL if op.op == "aten._fused_adamw" else MUL + ADD)
    each += elementwise.ATEN["lerp"][0] + MUL * 3 + ADD
    each += (CMP if attr(op, "amsgrad") else ZERO) + SPECIAL + DIV + ADD
    return (each + MUL + DIV + ADD) * n_out(op, index)


def _sgd(op: Op, index: int) -> Work:
    each = _prepare_gradient(op, MUL + ADD)
    if attr(op, "momentum"):
        each += ZERO if attr(op, "is_first_step") else MUL * 2 + ADD
        each += MUL + ADD if attr(op, "nesterov") else ZERO
    return (each + MUL + ADD) * n_out(op, index)


def _adagrad(op: Op, index: int) -> Work:
    each = _prepare_gradient(op, MUL + ADD) + MUL + ADD + SPECIAL + ADD + MUL + DIV + ADD
    return each * n_out(op, index)


formulas({
    _OF_ONE: (_SOURCE_OF_ONE, _each(_of_one)),
    "norm": (f"elementwise.vector_norm {_SOURCE_OF_ONE}", _each(_norm)),
    "max": (
        f"N - 1 comparisons, {_SOURCE_OF_ONE}",
        _each(lambda op, index: elementwise.reduction(n_in(op, index), n_out(op, index), CMP)),
    ),
    "mm": (  # self: (M, K) each, then mat2: (K, N) each -> (M, N) each
        f"a product of two matrices, {_SOURCE_OF_ONE}",
        _each(lambda op, index: dots(n_out(op, index), shape(op, index)[-1])),
    ),
    "powsum": (
        "no products of matrices; its powers have no formula here",
        unknown_work_formula("{} has no formula here but that it has no products of matrices"),
    ),
}, "aten._foreach_")  # fmt: skip
formulas({
    "_amp_foreach_non_finite_check_and_unscale": (
        "is it finite (cmp), x * inv_scale (mul): ATen native/cuda/AmpKernels.cu",
        _each(lambda op, index: (CMP + MUL) * n_out(op, index)),
    ),
    "_amp_update_scale": (
        "no products of matrices; which branch it takes depends on the values",
        unknown_work_formula("what {} computes depends on the values"),
    ),
    "_fused_adam _fused_adamw": (
        "lerp of the mean; v * b + c * g * g; sqrt(v) / b + eps; w - s * m / d: ATen native/cpu/FusedAdamKernel.cpp",
        _each(_adam),
    ),
    "_fused_sgd": (
        "m * momentum + g * (1 - dampening); nesterov: g + momentum * m; w - lr * g: ATen native/cpu/FusedSGDKernel.cpp",
        _each(_sgd),
    ),
    "_fused_adagrad": (
        "s + g * g; sqrt(s) + eps; w - lr * g / d: ATen native/cpu/FusedAdagradKernel.cpp", _each(_adagrad)
    ),
}, "aten.")  # fmt: skip
