"""ATen operators on complex numbers, counted in operations on their real and imaginary parts (work/complex_numbers.py)."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, complex_formula, formulas
from ...work.common_formulas import per_output
from ...work.complex_numbers import polynomials
from ...work.elementwise import ADD, CMP, DIV, MUL, SPECIAL, vector_norm
from ...work.shapes import n_in, n_out

POLYNOMIAL = """add sub rsub subtract mul multiply neg negative square sum prod cumsum cumprod addcmul mm bmm matmul mv dot vdot
inner addmm baddbmm addmv addbmm addr outer ger linear einsum tensordot scatter_add index_add index_put _unsafe_index_put
embedding_dense_backward pow trace"""
polynomials(*(f"aten.{name}" for name in POLYNOMIAL.split()), source="c10/util/complex.h (operator+=, operator*=)")

QUOTIENT = DIV * 2 + MUL * 5 + ADD * 3 + CMP * 4
"""|c| >= |d| > 0: r = d / c, s = 1 / (c + d r); (a + b r) s, (b - a r) s."""


def _vector_norm(op: Op) -> Work:
    order = 2.0 if op.attrs.get("ord") is None else float(op.attrs["ord"])
    n, out = n_in(op), n_out(op)
    if order not in (1, 2):
        raise UnknownWork(
            f"{op.op} of order {order:g} has no formula on complex numbers, only orders 1 and 2", SINGLE_COMPONENTS
        )
    real = vector_norm(n, out, order)
    return real + SPECIAL * n - (CMP * n if order == 1 else Work())  # |z| takes the place of |x|


formulas({
    "div divide true_divide": ("QUOTIENT: c10/util/complex.h (operator/=)", per_output(QUOTIENT)),
    "mean": (
        "sum, then one division per output, QUOTIENT: ATen native/ReduceOps.cpp",
        lambda op: ADD * (2 * max(n_in(op) - n_out(op), 0)) + QUOTIENT * n_out(op),
    ),
    "angle": ("atan2(b, a): c10/util/complex.h (std::arg)", per_output(SPECIAL)),
    "abs absolute": ("hypot(a, b): c10/util/complex.h (std::abs)", per_output(SPECIAL)),
    "exp": ("exp(a) * (cos(b), sin(b)): c10/util/complex.h (std::exp)", per_output(SPECIAL * 3 + MUL * 2)),
    "polar": ("r * cos(t), r * sin(t): ATen native/cpu/ComplexKernel.cpp", per_output(SPECIAL * 2 + MUL * 2)),
    "linalg_vector_norm": ("elementwise.vector_norm of |z|: ATen native/cpu/ReduceOpsKernel.cpp", _vector_norm),
    "sgn": ("z == 0 ? 0 : z / |z|: ATen native/cpu/zmath.h (sgn_impl)", per_output(CMP * 2 + SPECIAL + DIV * 2)),
    "eq ne": ("both parts compared: c10/util/complex.h (operator==)", per_output(CMP * 2)),
    "conj_physical _conj_physical": ("0 - b: ATen native/cpu/UnaryOpsKernel.cpp (conj_kernel)", per_output(ADD)),
}, "aten.", complex_formula)  # fmt: skip
formulas({
    "conj_physical _conj_physical": ("a real number is its own: native/cpu/UnaryOpsKernel.cpp", per_output(Work())),
}, "aten.")  # fmt: skip
