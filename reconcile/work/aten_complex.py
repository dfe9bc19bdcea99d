"""ATen operators on complex numbers, counted in operations on their real and imaginary parts.

A sum is two adds, a product (a + bi)(c + di) four multiplies and two adds, and a multiply-add of a matrix product four
multiply-adds onto two accumulators. A complex operand makes every operand complex: ATen converts the real ones.
"""

from __future__ import annotations

from ..core.records import Op
from ..core.work import SINGLE, UnknownWork, Work, complex_formula, find, formula
from .elementwise import ADD, CMP, DIV, MUL, SPECIAL, vector_norm
from .shapes import n_in, n_out

POLYNOMIAL = """add sub rsub subtract mul multiply neg negative square sum prod cumsum cumprod addcmul mm bmm matmul mv dot vdot
inner addmm baddbmm addmv addbmm addr outer ger linear einsum tensordot scatter_add index_add index_put _unsafe_index_put
embedding_dense_backward pow trace"""
"""Operators that only add and multiply: their work on complex numbers follows from that on real ones."""

PRODUCT = MUL * 4 + ADD * 2
QUOTIENT = DIV * 2 + MUL * 5 + ADD * 3 + CMP * 4
"""|c| >= |d| > 0: r = d / c, s = 1 / (c + d r); (a + b r) s, (b - a r) s."""


def complex_work(work: Work) -> Work:
    """Work on complex numbers of an expression that has this work on real ones. Raises UnknownWork for other than sums and
    products."""
    if work.div or work.cmp or work.special:
        raise UnknownWork("more than sums and products, of complex numbers")
    return Work(mac=4 * work.mac, accumulators=2 * work.accumulators) + ADD * (2 * work.add) + PRODUCT * work.mul


@complex_formula(
    *(f"aten.{name}" for name in POLYNOMIAL.split()),
    source="the real form's sums and products, of complex numbers: c10/util/complex.h (operator+=, operator*=)",
)
def _polynomial(op: Op) -> Work:
    real = find(op.op)
    if real is None:
        raise UnknownWork(f"no work formula for {op.op}")
    return complex_work(real.compute(op))


@complex_formula("aten.div", "aten.divide", "aten.true_divide", source="QUOTIENT: c10/util/complex.h (operator/=)")
def _quotient(op: Op) -> Work:
    return QUOTIENT * n_out(op)


@complex_formula("aten.mean", source="sum, then one division per output, QUOTIENT: ATen native/ReduceOps.cpp")
def _mean(op: Op) -> Work:
    return ADD * (2 * max(n_in(op) - n_out(op), 0)) + QUOTIENT * n_out(op)


@complex_formula("aten.abs", "aten.absolute", source="hypot(a, b): c10/util/complex.h (std::abs)")
@complex_formula("aten.angle", source="atan2(b, a): c10/util/complex.h (std::arg)")
def _one_call(op: Op) -> Work:
    return SPECIAL * n_out(op)


@complex_formula("aten.exp", source="exp(a) * (cos(b), sin(b)): c10/util/complex.h (std::exp)")
def _exp(op: Op) -> Work:
    return (SPECIAL * 3 + MUL * 2) * n_out(op)


@complex_formula("aten.polar", source="r * cos(t), r * sin(t): ATen native/cpu/ComplexKernel.cpp")
def _polar(op: Op) -> Work:
    return (SPECIAL * 2 + MUL * 2) * n_out(op)


@complex_formula(
    "aten.linalg_vector_norm", source="elementwise.vector_norm of |z|: ATen native/cpu/ReduceOpsKernel.cpp"
)
def _vector_norm(op: Op) -> Work:
    order = 2.0 if op.attrs.get("ord") is None else float(op.attrs["ord"])
    n, out = n_in(op), n_out(op)
    if order not in (1, 2):
        raise UnknownWork(f"{op.op} of order {order:g} has no formula on complex numbers, only orders 1 and 2", SINGLE)
    real = vector_norm(n, out, order)
    return real + SPECIAL * n - (CMP * n if order == 1 else Work())  # |z| takes the place of |x|


@complex_formula("aten.sgn", source="z == 0 ? 0 : z / |z|: ATen native/cpu/zmath.h (sgn_impl)")
def _sgn(op: Op) -> Work:
    return (CMP * 2 + SPECIAL + DIV * 2) * n_out(op)


@complex_formula("aten.eq", "aten.ne", source="both parts compared: c10/util/complex.h (operator==)")
def _compare(op: Op) -> Work:
    return CMP * (2 * n_out(op))


@complex_formula(
    "aten.conj_physical", "aten._conj_physical", source="0 - b: ATen native/cpu/UnaryOpsKernel.cpp (conj_kernel)"
)
def _conjugate(op: Op) -> Work:
    return ADD * n_out(op)


@formula("aten.conj_physical", "aten._conj_physical", source="a real number is its own: native/cpu/UnaryOpsKernel.cpp")
def _conjugate_of_real(op: Op) -> Work:
    return Work() * n_out(op)
