"""Formulas of ATen's linear algebra: direct factorisations, solvers and chains of matrix products.

The convention `matmul` does not count factorisations, see work/linalg.py. A factorisation that iterates until it converges, or
whose reflections depend on the data, has no count, and no products of matrices.
"""

from __future__ import annotations

from functools import cache

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, complex_formula, formulas, prod
from .. import linalg
from ..common_formulas import COMPLEX_SOURCE, COMPLEX_UNKNOWN, per_column, per_matrix, solve, unknown_work_formula
from ..contraction import dots
from ..shapes import attr, matrices, shape

_LAPACK = "LAPACK working note 41; ATen native/BatchLinearAlgebra.cpp"


DIRECT = """linalg_cholesky_ex cholesky_inverse _linalg_det _linalg_slogdet linalg_inv_ex linalg_lu_factor_ex linalg_lu
_linalg_solve_ex linalg_lu_solve linalg_solve_triangular triangular_solve cholesky_solve"""
"""The direct factorisations and solvers."""


def _lu(op: Op) -> Work:
    if not op.attrs.get("pivot", True):
        raise UnknownWork(f"{op.op} without pivots, for which LAPACK has no routine")
    *batch, m, n = matrices(op)
    return linalg.lu(m, n) * prod(batch)


def _triangular_solve(op: Op) -> Work:
    # linalg_solve_triangular: A (*, n, n), B (*, n, k) or (*, k, n); triangular_solve: B (*, n, k), A (*, n, n)
    unit = bool(op.attrs.get("unitriangular"))
    return per_column(lambda n, k: linalg.triangular_solve(n, k, unit), op.op == "aten.triangular_solve")(op)


def _pinv(op: Op) -> Work:
    *batch, m, n = matrices(op)
    reason = f"the singular values that {op.op} inverts are found by iteration"
    raise UnknownWork(reason, SINGLE_COMPONENTS, dots(prod(batch) * m * n, min(m, n)))


def _matrix_power(op: Op) -> Work:
    # a (*, N, N): a square per binary digit of n but the first, and a product per further 1
    *batch, rows, _ = shape(op)
    n = abs(int(attr(op, "n")))
    products = max(n.bit_length() - 1, 0) + max(bin(n).count("1") - 1, 0)
    work = dots(prod(batch) * rows * rows, rows) * products
    if int(attr(op, "n")) < 0:
        raise UnknownWork(f"the work of the inverse in {op.op} is not fixed", SINGLE_COMPONENTS, work)
    return work


def _multi_dot(op: Op) -> Work:
    # (a, b), (b, c), ... (y, z); the first may be (b,), the last (y,)
    shapes = [shape(op, at) for at in range(len(op.inputs))]
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0], *(each[0] for each in shapes[1:])]
    sizes.append(1 if len(shapes[-1]) == 1 else shapes[-1][-1])
    return _chain(tuple(sizes), 0, len(sizes) - 2)[1]


@cache
def _chain(sizes: tuple[int, ...], first: int, last: int) -> tuple[int, Work]:
    """The multiply-adds and the work of the product of these matrices, in the first of the cheapest orders.

    If orders cost the same, PyTorch first multiplies the first two of three matrices, and the last two of more.
    """
    if first == last:
        return 0, Work()
    found = []
    for split in range(first, last):
        left, right = _chain(sizes, first, split), _chain(sizes, split + 1, last)
        here = dots(sizes[first] * sizes[last + 1], sizes[split + 1])
        found.append((left[0] + right[0] + here.mac, left[1] + right[1] + here))
    if len(sizes) == 4 and first == 0 and last == 2:
        found.reverse()
    return min(found, key=lambda one: one[0])


formulas({
    names: (f"{routine}: {_LAPACK}", compute)
    for names, routine, compute in (
        ("linalg_cholesky_ex linalg_cholesky cholesky", "linalg.cholesky (POTRF)", per_matrix(linalg.cholesky)),
        ("cholesky_inverse", "linalg.cholesky_inverse (POTRI)", per_matrix(linalg.cholesky_inverse)),
        ("_linalg_det linalg_det det", "linalg.determinant (GETRF)", per_matrix(linalg.determinant)),
        ("_linalg_slogdet linalg_slogdet slogdet", "linalg.log_determinant (GETRF)", per_matrix(linalg.log_determinant)),
        (
            "linalg_inv_ex linalg_inv inverse", "linalg.solve of the identity (GESV)",
            per_matrix(lambda n: linalg.solve(n, n)),
        ),
        ("linalg_lu_factor_ex linalg_lu_factor linalg_lu", "linalg.lu (GETRF)", _lu),
        ("_linalg_solve_ex linalg_solve_ex linalg_solve", "linalg.solve (GESV)", solve()),
        ("linalg_lu_solve", "linalg.lu_solve (GETRS)", per_column(linalg.lu_solve)),
        ("linalg_solve_triangular triangular_solve", "linalg.triangular_solve (TRSM)", _triangular_solve),
        # B (*, n, k), L (*, n, n)
        ("cholesky_solve", "linalg.cholesky_solve (POTRS)", per_column(linalg.cholesky_solve, 1)),
    )
}, "aten.")  # fmt: skip
formulas({
    "linalg_pinv pinverse": (
        "V / S times U^H, a product of matrices; the decomposition has none, and is not fixed: native/LinearAlgebra.cpp",
        _pinv,
    ),
    "linalg_matrix_power matrix_power": (
        "squarings and products of binary powering; |n| of the inverse if n < 0: ATen native/LinearAlgebra.cpp",
        _matrix_power,
    ),
    "linalg_multi_dot chain_matmul": (
        "products of the pairs in the cheapest order: ATen native/LinearAlgebra.cpp (matrix_chain_order)", _multi_dot
    ),
}, "aten.")  # fmt: skip
formulas({DIRECT: (COMPLEX_SOURCE, unknown_work_formula(COMPLEX_UNKNOWN))}, "aten.", complex_formula)
