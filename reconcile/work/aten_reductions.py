"""ATen reductions, scans and norms."""

from __future__ import annotations

from ..core.records import Op
from ..core.work import UnknownWork, Work, formula, prod
from . import elementwise, normalization
from .elementwise import ADD, CMP, MUL
from .shapes import n_in, n_out, shape


@formula("aten.sum", "aten.nansum", source="N - O adds: ATen native/cpu/SumKernel.cpp")
def _sum(op: Op) -> Work:
    return elementwise.reduction(n_in(op), n_out(op), ADD)


@formula("aten.prod", source="N - O multiplies: ATen native/cpu/ReduceOpsKernel.cpp")
def _prod(op: Op) -> Work:
    return elementwise.reduction(n_in(op), n_out(op), MUL)


@formula("aten.histc", source="by linear interpolation: ATen native/cpu/HistogramKernel.cpp")
def _histc(op: Op) -> Work:
    # each element: against both edges cmp 2; (x - left) * bins / (right - left): add, mul, div; its bin + 1: add
    # both edges are the extrema where none is given
    n = n_in(op)
    edges = 2 * max(n - 1, 0) if op.attrs.get("min", 0) == op.attrs.get("max", 0) else 0
    return Work(cmp=2 * n + edges, add=2 * n, mul=n, div=n)


@formula(
    "aten.amax",
    "aten.amin",
    "aten.argmax",
    "aten.argmin",
    "aten.aminmax",
    source="N - O comparisons per extremum: ATen native/cpu/ReduceOpsKernel.cpp",
)
def _extremum(op: Op) -> Work:
    return elementwise.reduction(n_in(op), n_out(op), CMP * (2 if op.op == "aten.aminmax" else 1))


@formula(
    "aten.max",
    "aten.min",
    source="of two tensors one cmp per element, of one N - O: ATen native/ReduceOps.cpp, TensorCompare.cpp",
)
def _max(op: Op) -> Work:
    return CMP * n_out(op) if len(op.inputs) == 2 else elementwise.reduction(n_in(op), n_out(op), CMP)


@formula("aten.mean", source="sum, then one division per output: ATen native/ReduceOps.cpp")
def _mean(op: Op) -> Work:
    return normalization.mean(n_in(op), n_out(op))


@formula(
    "aten.var",
    "aten.var_mean",
    "aten.std",
    "aten.std_mean",
    source="two passes, see normalization.variance; std: one sqrt per output",
)
def _var(op: Op) -> Work:
    root = Work(special=n_out(op)) if "std" in op.op else Work()
    return normalization.variance(n_in(op), n_out(op)) + root


@formula(
    "aten.cumsum", source="each element added to an accumulator that starts at 0: ATen native/cpu/ReduceOpsKernel.cpp"
)
def _cumsum(op: Op) -> Work:
    return ADD * n_out(op)


@formula(
    "aten.cumprod",
    source="each element multiplied into an accumulator that starts at 1: ATen native/cpu/ReduceOpsKernel.cpp",
)
def _cumprod(op: Op) -> Work:
    return MUL * n_out(op)


@formula("aten.logsumexp", source="elementwise.logsumexp: ATen native/ReduceOps.cpp (logsumexp_out_impl)")
def _logsumexp(op: Op) -> Work:
    return elementwise.logsumexp(n_in(op), n_out(op))


@formula(
    "aten.linalg_vector_norm",
    "aten.norm",
    "aten.frobenius_norm",
    source="elementwise.vector_norm: ATen native/LinearAlgebra.cpp",
)
def _vector_norm(op: Op) -> Work:
    order = op.attrs.get("ord" if op.op == "aten.linalg_vector_norm" else "p")
    return elementwise.vector_norm(n_in(op), n_out(op), 2 if order is None else float(order))


@formula(
    "aten.cosine_similarity",
    source="composite, native/Distance.cpp: two norms (2N mul, 2(N-R) add, 2R sqrt), 2R clamps, 2N div, N mul, N-R add",
)
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
