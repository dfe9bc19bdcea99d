"""Formulas of TensorFlow's linear algebra: factorisations, linear systems, sparse and banded products, complex numbers.

Factorisations and systems are counted as ATen's (work/linalg.py), sparse and banded products by their stored values, and complex
numbers by their parts (aten/complex_numbers.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.records import Op
from ...core.work import SINGLE, UnknownWork, Work, complex_formula, formula, no_arithmetic, prod
from .. import linalg, ordering
from ..complex_numbers import polynomials
from ..elementwise import ADD, MUL, SPECIAL
from ..shapes import attr, n_in, n_out, shape, squares

_EIGEN = "LAPACK working note 41; TensorFlow core/kernels/linalg"


def _each(work: Callable[[int], Work]) -> Callable[[Op], Work]:
    """``work`` of n for each of the square matrices."""

    def compute(op: Op) -> Work:
        count, n = squares(op)
        return work(n) * count

    return compute


def _log_determinant(n: int) -> Work:
    """PartialPivLU; of the diagonal |u| (cmp), the sum of log |u| onto 0, the product of u / |u| and the permutation's sign."""
    return linalg.lu(n, n) + Work(cmp=n, special=n, add=n, div=n, mul=n)


for _name, _work, _routine in (
    ("Cholesky", linalg.cholesky, "linalg.cholesky (LLT)"),
    ("Lu", lambda n: linalg.lu(n, n), "linalg.lu (PartialPivLU)"),
    ("MatrixInverse", lambda n: linalg.solve(n, n), "linalg.solve of the identity (PartialPivLU)"),
    ("LogMatrixDeterminant", _log_determinant, "linalg.lu, and the diagonal's signs and logarithms (SLogDet)"),
    (
        "MatrixDeterminant",
        lambda n: _log_determinant(n) + Work(special=1, mul=1),
        "sign * exp of LogMatrixDeterminant (determinant_op.cc)",
    ),
):
    formula(_name, source=f"{_routine}: {_EIGEN}")(_each(_work))


def _columns(op: Op, n: int) -> int:
    """The right-hand sides of all matrices: as many as the solution has elements, by n."""
    return n_out(op) // n if n else 0


@formula("MatrixSolve", source=f"linalg.solve (PartialPivLU): {_EIGEN}")
def _solve(op: Op) -> Work:
    # A (*, n, n), B (*, n, k)
    count, n = squares(op)
    return linalg.lu(n, n) * count + linalg.lu_solve(n, _columns(op, n))


@formula("MatrixTriangularSolve", source=f"linalg.triangular_solve (triangularView): {_EIGEN}")
def _triangular_solve(op: Op) -> Work:
    # A (*, n, n), B (*, n, k), whose batches are broadcast
    n = squares(op)[1]
    return linalg.triangular_solve(n, _columns(op, n))


@formula("TridiagonalMatMul", source="a multiply-add per stored value and column: core/kernels/linalg")
def _tridiagonal(op: Op) -> Work:
    # superdiagonal, diagonal, subdiagonal (*, 1, m), of which the outer two store m - 1; x (*, m, n)
    *batch, m, n = shape(op, 3)
    return Work(mac=max(3 * m - 2, 0) * n, accumulators=m * n) * prod(batch)


@formula(
    "SparseTensorDenseMatMul",
    source="a multiply-add per stored value and column: core/kernels/sparse_tensor_dense_matmul_op.cc",
)
def _sparse_product(op: Op) -> Work:
    # places (stored, 2), values (stored,), sizes (2,), dense (K, N), or (N, K) if adjoint_b
    products = shape(op, 1)[0] * shape(op, 3)[0 if attr(op, "adjoint_b", False) else 1]
    return Work(mac=products, accumulators=min(products, n_out(op)))


@formula("SparseMatMul", source="it leaves out the zeros of a dense tensor: core/kernels/sparse_matmul_op.cc")
def _refuse_zero_skipping(op: Op) -> Work:
    n_in(op)
    raise UnknownWork(f"{op.op} leaves out the products with 0, and how many there are depends on the data")


@formula(
    "Unique",
    "UniqueWithCounts",
    source="ordering.distinct, one definition whatever the data: core/kernels/unique_op.cc",
)
@formula("UniqueV2", "UniqueWithCountsV2", source="of a row the same; of rows not fixed: core/kernels/unique_op.cc")
def _unique(op: Op) -> Work:
    if len(shape(op)) != 1:
        raise UnknownWork(f"how often {op.op} compares elements of rows depends on the data", SINGLE)
    return ordering.distinct(n_in(op))


@formula("Cross", source="a * b - c * d, per result: core/kernels/cross_op.h")
def _cross(op: Op) -> Work:
    return (MUL * 2 + ADD) * n_out(op)


@formula(
    "LowerBound", "UpperBound", source="ordering.search_sorted, one search per value: core/kernels/searchsorted_op.cc"
)
def _search_bounds(op: Op) -> Work:
    # sorted (R, n), values (R, k)
    return ordering.search_sorted(n_out(op), shape(op)[-1])


POLYNOMIAL = """Add AddV2 Sub Neg Mul Square Sum Prod Cumsum Cumprod AddN BiasAdd MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3
Einsum XlaEinsum"""


polynomials(*POLYNOMIAL.split(), source="std::complex, core/kernels/cwise_ops.h")


@complex_formula("ComplexAbs", source="hypot(a, b): core/kernels/cwise_op_complex_abs.cc")
@complex_formula("Angle", source="atan2(b, a): core/kernels/cwise_op_arg.cc")
def _one_call(op: Op) -> Work:
    return SPECIAL * n_out(op)


@complex_formula("Conj", source="0 - b: core/kernels/cwise_op_conj.cc")
def _conjugate(op: Op) -> Work:
    return ADD * n_out(op)


no_arithmetic("the parts of a complex number", "Real", "Imag", "Complex")

_DIRECT = "Cholesky Lu MatrixInverse LogMatrixDeterminant MatrixDeterminant MatrixSolve MatrixTriangularSolve"


@complex_formula(*_DIRECT.split(), source="no products of matrices; the rest has no formula on complex numbers")
def _of_complex(op: Op) -> Work:
    shape(op)
    raise UnknownWork(f"{op.op} has no formula on complex numbers", SINGLE)
