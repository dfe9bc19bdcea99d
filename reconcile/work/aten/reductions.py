"""Formulas of ATen reductions, scans and norms."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import UnknownWork, Work, formulas, prod
from .. import elementwise, normalization
from ..common_formulas import per_output, reduction
from ..elementwise import ADD, CMP, MUL
from ..shapes import n_in, n_out, shape


def _histc(op: Op) -> Work:
    # each element: against both edges cmp 2; (x - left) * bins / (right - left): add, mul, div; its bin + 1: add
    # both edges are the extrema where none is given
    n = n_in(op)
    edges = 2 * max(n - 1, 0) if op.attrs.get("min", 0) == op.attrs.get("max", 0) else 0
    return Work(cmp=2 * n + edges, add=2 * n, mul=n, div=n)


def _max(op: Op) -> Work:
    return CMP * n_out(op) if len(op.inputs) == 2 else elementwise.reduction(n_in(op), n_out(op), CMP)


def _var(op: Op) -> Work:
    root = Work(special=n_out(op)) if "std" in op.op else Work()
    return normalization.variance(n_in(op), n_out(op)) + root


def _vector_norm(op: Op) -> Work:
    order = op.attrs.get("ord" if op.op == "aten.linalg_vector_norm" else "p")
    return elementwise.vector_norm(n_in(op), n_out(op), 2 if order is None else float(order))


def _cosine_similarity(op: Op) -> Work:
    n, r = prod(broadcast(shape(op, 0), shape(op, 1))), n_out(op)
    norm = elementwise.vector_norm(n, r, 2)
    return norm * 2 + Work(cmp=2 * r, div=2 * n, mul=n) + elementwise.reduction(n, r, ADD)


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast shape of two. Raises UnknownWork if they do not fit."""
    wide = max(len(a), len(b))
    result: list[int] = []
    for x, y in zip((1,) * (wide - len(a)) + a, (1,) * (wide - len(b)) + b, strict=True):
        if x != y and 1 not in (x, y):
            raise UnknownWork(f"shapes {list(a)} and {list(b)} do not broadcast")
        result.append(y if x == 1 else x)
    return tuple(result)


formulas({
    "sum nansum": ("N - O adds: ATen native/cpu/SumKernel.cpp", reduction(ADD)),
    "prod": ("N - O multiplies: ATen native/cpu/ReduceOpsKernel.cpp", reduction(MUL)),
    "histc": ("by linear interpolation: ATen native/cpu/HistogramKernel.cpp", _histc),
    "amax amin argmax argmin": ("N - O comparisons per extremum: ATen native/cpu/ReduceOpsKernel.cpp", reduction(CMP)),
    "aminmax": ("N - O comparisons per extremum: ATen native/cpu/ReduceOpsKernel.cpp", reduction(CMP * 2)),
    "max min": (
        "of two tensors one cmp per element, of one N - O: ATen native/ReduceOps.cpp, TensorCompare.cpp", _max
    ),
    "mean": (
        "sum, then one division per output: ATen native/ReduceOps.cpp",
        lambda op: normalization.mean(n_in(op), n_out(op)),
    ),
    "var var_mean std std_mean": ("two passes, see normalization.variance; std: one sqrt per output", _var),
    "cumsum": (
        "each element added to an accumulator that starts at 0: ATen native/cpu/ReduceOpsKernel.cpp",
        per_output(ADD),
    ),
    "cumprod": (
        "each element multiplied into an accumulator that starts at 1: ATen native/cpu/ReduceOpsKernel.cpp",
        per_output(MUL),
    ),
    "logsumexp": (
        "elementwise.logsumexp: ATen native/ReduceOps.cpp (logsumexp_out_impl)",
        lambda op: elementwise.logsumexp(n_in(op), n_out(op)),
    ),
    "linalg_vector_norm norm frobenius_norm": (
        "elementwise.vector_norm: ATen native/LinearAlgebra.cpp", _vector_norm
    ),
    "cosine_similarity": (
        "composite, native/Distance.cpp: two norms (2N mul, 2(N-R) add, 2R sqrt), 2R clamps, 2N div, N mul, N-R add",
        _cosine_similarity,
    ),
}, "aten.")  # fmt: skip
