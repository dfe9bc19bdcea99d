"""Formulas of ATen operators on lists of tensors (``_foreach_*``), and of fused optimiser steps (``_fused_*``).

A foreach operator does for each tensor what the operator on one tensor does: ATen native/ForeachOpsKernels.cpp.  A record's
outputs are the list of results; for an operator that works in place, the list that it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.records import Op
from ...core.work import SINGLE, ZERO, UnknownWork, Work, find, formula, no_arithmetic
from .. import elementwise
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


def _each(op: Op, one: Callable[[int], Work]) -> Work:
    """The sum over the results; there is at least one tensor in a list."""
    n_out(op)
    work = ZERO
    for index in range(len(op.outputs)):
        work = work + one(index)
    return work


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


def _of_one(op: Op) -> Work:
    of_one = find("aten." + op.op[len("aten._foreach_") :])
    assert of_one is not None
    compute = of_one.compute
    return _each(
        op, lambda index: compute(op._replace(op=of_one.op, outputs=(op.outputs[index],), attrs=_attrs(op, index)))
    )


formula(*(f"aten._foreach_{name}" for name in _OF_ONE.split()), source=_SOURCE_OF_ONE)(_of_one)


@formula("aten._foreach_norm", source=f"elementwise.vector_norm {_SOURCE_OF_ONE}")
def _norm(op: Op) -> Work:
    order = op.attrs.get("ord", 2)
    return _each(op, lambda index: elementwise.vector_norm(n_in(op, index), n_out(op, index), float(order)))


@formula("aten._foreach_max", source=f"N - 1 comparisons, {_SOURCE_OF_ONE}")
def _max(op: Op) -> Work:
    return _each(op, lambda index: elementwise.reduction(n_in(op, index), n_out(op, index), CMP))


@formula("aten._foreach_mm", source=f"a product of two matrices, {_SOURCE_OF_ONE}")
def _mm(op: Op) -> Work:
    # self: (M, K) each, then mat2: (K, N) each -> (M, N) each
    return _each(op, lambda index: dots(n_out(op, index), shape(op, index)[-1]))


@formula("aten._foreach_powsum", source="no products of matrices; its powers have no formula here")
def _powsum(op: Op) -> Work:
    n_in(op)
    raise UnknownWork(f"{op.op} has no formula here but that it has no products of matrices", SINGLE)


@formula(
    "aten._amp_foreach_non_finite_check_and_unscale",
    source="is it finite (cmp), x * inv_scale (mul): ATen native/cuda/AmpKernels.cu",
)
def _unscale(op: Op) -> Work:
    return _each(op, lambda index: (CMP + MUL) * n_out(op, index))


@formula("aten._amp_update_scale", source="no products of matrices; which branch it takes depends on the values")
def _update_scale(op: Op) -> Work:
    n_in(op)
    raise UnknownWork(f"what {op.op} computes depends on the values", SINGLE)


def _prepare_gradient(op: Op, decayed: Work) -> Work:
    """For one element of a gradient, before the step: unscaling, negation, weight decay (``decayed``)."""
    work = DIV if op.given("grad_scale") else ZERO
    if attr(op, "maximize"):
        work = work + ADD
    return work + decayed if attr(op, "weight_decay") else work


@formula(
    "aten._fused_adam",
    "aten._fused_adamw",
    source="lerp of the mean; v * b + c * g * g; sqrt(v) / b + eps; w - s * m / d: ATen native/cpu/FusedAdamKernel.cpp",
)
def _adam(op: Op) -> Work:
    n_out(op)
    each = _prepare_gradient(op, MUL if op.op == "aten._fused_adamw" else MUL + ADD)
    each = each + elementwise.ATEN["lerp"][0] + MUL * 3 + ADD
    each = each + (CMP if attr(op, "amsgrad") else ZERO) + SPECIAL + DIV + ADD
    return _each(op, lambda index: (each + MUL + DIV + ADD) * n_out(op, index))


@formula(
    "aten._fused_sgd",
    source="m * momentum + g * (1 - dampening); nesterov: g + momentum * m; w - lr * g: ATen native/cpu/FusedSGDKernel.cpp",
)
def _sgd(op: Op) -> Work:
    n_out(op)
    each = _prepare_gradient(op, MUL + ADD)
    if attr(op, "momentum"):
        each = each + (ZERO if attr(op, "is_first_step") else MUL * 2 + ADD)
        each = each + (MUL + ADD if attr(op, "nesterov") else ZERO)
    return _each(op, lambda index: (each + MUL + ADD) * n_out(op, index))


@formula(
    "aten._fused_adagrad", source="s + g * g; sqrt(s) + eps; w - lr * g / d: ATen native/cpu/FusedAdagradKernel.cpp"
)
def _adagrad(op: Op) -> Work:
    n_out(op)
    each = _prepare_gradient(op, MUL + ADD) + MUL + ADD + SPECIAL + ADD + MUL + DIV + ADD
    return _each(op, lambda index: each * n_out(op, index))
