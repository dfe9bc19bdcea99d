"""Formulas of ATen's linear algebra: direct factorisations, solvers and chains of matrix products.

The convention `matmul` does not count factorisations, see work/linalg.py. A factorisation that iterates until it converges, or
whose reflections depend on the data, has no count, and no products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...core.records import Op
from ...core.work import SINGLE, UnknownWork, Work, complex_formula, formula, prod
from .. import linalg
from ..contraction import dots
from ..shapes import attr, matrices, n_out, shape, squares

_LAPACK = "LAPACK working note 41; ATen native/BatchLinearAlgebra.cpp"


def _each(work: Callable[[int], Work]) -> Callable[[Op], Work]:
    """``work`` of n for each of the square matrices."""

    def compute(op: Op) -> Work:
        count, n = squares(op)
        return work(n) * count

    return compute


for _names, _work, _routine in (
    ("linalg_cholesky_ex linalg_cholesky cholesky", linalg.cholesky, "linalg.cholesky (POTRF)"),
    ("cholesky_inverse", linalg.cholesky_inverse, "linalg.cholesky_inverse (POTRI)"),
    ("_linalg_det linalg_det det", linalg.determinant, "linalg.determinant (GETRF)"),
    ("_linalg_slogdet linalg_slogdet slogdet", linalg.log_determinant, "linalg.log_determinant (GETRF)"),
    ("linalg_inv_ex linalg_inv inverse", lambda n: linalg.solve(n, n), "linalg.solve of the identity (GESV)"),
):
    formula(*(f"aten.{name}" for name in _names.split()), source=f"{_routine}: {_LAPACK}")(_each(_work))


@formula("aten.linalg_lu_factor_ex", "aten.linalg_lu_factor", "aten.linalg_lu", source=f"linalg.lu (GETRF): {_LAPACK}")
def _lu(op: Op) -> Work:
    if not op.attrs.get("pivot", True):
        raise UnknownWork(f"{op.op} without pivots, for which LAPACK has no routine")
    *batch, m, n = matrices(op)
    return linalg.lu(m, n) * prod(batch)


@formula("aten._linalg_solve_ex", "aten.linalg_solve_ex", "aten.linalg_solve", source=f"linalg.solve (GESV): {_LAPACK}")
def _solve(op: Op) -> Work:
    # A (*, n, n), B (*, n, k), (*, k, n) if not left, or (*, n): every matrix is factorised once
    count, n = squares(op)
    return linalg.lu(n, n) * count + _by_columns(op, n, linalg.lu_solve)


def _by_columns(op: Op, n: int, work: Callable[[int, int], Work]) -> Work:
    """``work`` of n and of all the right-hand sides, as many as the solution has elements, by n."""
    return work(n, n_out(op) // n if n else 0)


@formula("aten.linalg_lu_solve", source=f"linalg.lu_solve (GETRS): {_LAPACK}")
def _lu_solve(op: Op) -> Work:
    return _by_columns(op, squares(op)[1], linalg.lu_solve)


@formula("aten.linalg_solve_triangular", source=f"linalg.triangular_solve (TRSM): {_LAPACK}")
def _solve_triangular(op: Op) -> Work:
    # A (*, n, n), B (*, n, k) or (*, k, n)
    unit = bool(op.attrs.get("unitriangular"))
    return _by_columns(op, squares(op)[1], lambda n, k: linalg.triangular_solve(n, k, unit))


@formula("aten.triangular_solve", source=f"linalg.triangular_solve (TRSM): {_LAPACK}")
def _triangular_solve(op: Op) -> Work:
    # B (*, n, k), A (*, n, n)
    unit = bool(attr(op, "unitriangular", False))
    return _by_columns(op, squares(op, 1)[1], lambda n, k: linalg.triangular_solve(n, k, unit))


@formula("aten.cholesky_solve", source=f"linalg.cholesky_solve (POTRS): {_LAPACK}")
def _cholesky_solve(op: Op) -> Work:
    # B (*, n, k), L (*, n, n)
    return _by_columns(op, squares(op, 1)[1], linalg.cholesky_solve)


@formula(
    "aten.linalg_pinv",
    "aten.pinverse",
    source="V / S times U^H, a product of matrices; the decomposition has none, and is not fixed: native/LinearAlgebra.cpp",
)
def _pinv(op: Op) -> Work:
    *batch, m, n = matrices(op)
    reason = f"the singular values that {op.op} inverts are found by iteration"
    raise UnknownWork(reason, SINGLE, dots(prod(batch) * m * n, min(m, n)))


DIRECT = """linalg_cholesky_ex cholesky_inverse _linalg_det _linalg_slogdet linalg_inv_ex linalg_lu_factor_ex linalg_lu
_linalg_solve_ex linalg_lu_solve linalg_solve_triangular triangular_solve cholesky_solve"""


@complex_formula(
    *(f"aten.{name}" for name in DIRECT.split()),
    source="no products of matrices; the rest has no formula on complex numbers",
)
def _of_complex(op: Op) -> Work:
    shape(op)
    raise UnknownWork(f"{op.op} has no formula on complex numbers", SINGLE)


@formula(
    "aten.linalg_matrix_power",
    "aten.matrix_power",
    source="squarings and products of binary powering; |n| of the inverse if n < 0: ATen native/LinearAlgebra.cpp",
)
def _matrix_power(op: Op) -> Work:
    # a (*, N, N): a square per binary digit of n but the first, and a product per further 1
    *batch, rows, _ = shape(op)
    n = abs(int(attr(op, "n")))
    products = max(n.bit_length() - 1, 0) + max(bin(n).count("1") - 1, 0)
    work = dots(prod(batch) * rows * rows, rows) * products
    if int(attr(op, "n")) < 0:
        raise UnknownWork(f"the work of the inverse in {op.op} is not fixed", SINGLE, work)
    return work


@formula(
    *("aten.linalg_multi_dot", "aten.chain_matmul"),
    source="products of the pairs in the cheapest order: ATen native/LinearAlgebra.cpp (matrix_chain_order)",
)
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
