"""Formulas of TensorFlow's linear algebra (no QR, no SVD), of distinct values and sorted search, and of complex numbers.

Factorisations (Cholesky, LU) and linear systems are counted as ATen's (work/linalg.py), sparse and tridiagonal products by
their stored values, ``Unique`` and ``LowerBound`` by their comparisons (work/ordering.py), and complex numbers by their parts
(work/complex_numbers.py).
"""

from __future__ import annotations

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, complex_formula, formulas, no_arithmetic, prod
from .. import linalg, ordering
from ..common_formulas import (
    COMPLEX_SOURCE,
    COMPLEX_UNKNOWN,
    per_column,
    per_matrix,
    per_output,
    solve,
    unknown_work_formula,
)
from ..complex_numbers import polynomials
from ..contraction import dots
from ..elementwise import ADD, MUL, SPECIAL
from ..shapes import attr, n_in, n_out, shape

_EIGEN = "LAPACK working note 41; TensorFlow core/kernels/linalg"


def _log_determinant(n: int) -> Work:
    """PartialPivLU; of the diagonal |u| (cmp), the sum of log |u| onto 0, the product of u / |u| and the permutation's sign."""
    return linalg.lu(n, n) + Work(cmp=n, special=n, add=n, div=n, mul=n)


def _tridiagonal(op: Op) -> Work:
    # superdiagonal, diagonal, subdiagonal (*, 1, m), of which the outer two store m - 1; x (*, m, n)
    *batch, m, n = shape(op, 3)
    return Work(mac=max(3 * m - 2, 0) * n, accumulators=m * n) * prod(batch)


def _sparse_product(op: Op) -> Work:
    # places (stored, 2), values (stored,), sizes (2,), dense (K, N), or (N, K) if adjoint_b
    products = shape(op, 1)[0] * shape(op, 3)[0 if attr(op, "adjoint_b", False) else 1]
    return Work(mac=products, accumulators=min(products, n_out(op)))


def _unique(op: Op) -> Work:
    if len(shape(op)) != 1:
        raise UnknownWork(f"how often {op.op} compares elements of rows depends on the data", SINGLE_COMPONENTS)
    return ordering.distinct(n_in(op))


formulas({
    name: (f"{routine}: {_EIGEN}", compute)
    for name, routine, compute in (
        ("Cholesky", "linalg.cholesky (LLT)", per_matrix(linalg.cholesky)),
        ("Lu", "linalg.lu (PartialPivLU)", per_matrix(lambda n: linalg.lu(n, n))),
        ("MatrixInverse", "linalg.solve of the identity (PartialPivLU)", per_matrix(lambda n: linalg.solve(n, n))),
        (
            "LogMatrixDeterminant", "linalg.lu, and the diagonal's signs and logarithms (SLogDet)",
            per_matrix(_log_determinant),
        ),
        (
            "MatrixDeterminant", "sign * exp of LogMatrixDeterminant (determinant_op.cc)",
            per_matrix(lambda n: _log_determinant(n) + Work(special=1, mul=1)),
        ),
        ("MatrixSolve", "linalg.solve (PartialPivLU)", solve()),
        # A (*, n, n), B (*, n, k), whose batches are broadcast
        ("MatrixTriangularSolve", "linalg.triangular_solve (triangularView)", per_column(linalg.triangular_solve)),
    )
})  # fmt: skip
formulas({
    "TridiagonalMatMul": ("a multiply-add per stored value and column: core/kernels/linalg", _tridiagonal),
    "SparseTensorDenseMatMul": (
        "a multiply-add per stored value and column: core/kernels/sparse_tensor_dense_matmul_op.cc", _sparse_product
    ),
    "SparseMatMul": (  # a (M, K), or (K, M) if transpose_a; both are dense
        "one dot product of K terms per output element: a dense tensor stores its zeros; the sparsity hint lets the kernel "
        "skip them, but is not counted: core/kernels/sparse_matmul_op.cc",
        lambda op: dots(n_out(op), shape(op)[0 if attr(op, "transpose_a", False) else 1]),
    ),
    "Unique UniqueWithCounts": (
        "ordering.distinct, one definition whatever the data: core/kernels/unique_op.cc", _unique
    ),
    "UniqueV2 UniqueWithCountsV2": ("of a row the same; of rows not fixed: core/kernels/unique_op.cc", _unique),
    "Cross": ("a * b - c * d, per result: core/kernels/cross_op.h", per_output(MUL * 2 + ADD)),
    "LowerBound UpperBound": (  # sorted (R, n), values (R, k)
        "ordering.search_sorted, one search per value: core/kernels/searchsorted_op.cc",
        lambda op: ordering.search_sorted(n_out(op), shape(op)[-1]),
    ),
})  # fmt: skip

COMPLEX_POLYNOMIAL_OPS = """Add AddV2 Sub Neg Mul Square Sum Prod Cumsum Cumprod AddN BiasAdd
MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum XlaEinsum"""
polynomials(*COMPLEX_POLYNOMIAL_OPS.split(), source="std::complex, core/kernels/cwise_ops.h")
_COMPLEX_UNFIXED_OPS = (
    "Cholesky Lu MatrixInverse LogMatrixDeterminant MatrixDeterminant MatrixSolve MatrixTriangularSolve"
)
formulas({
    "ComplexAbs": ("hypot(a, b): core/kernels/cwise_op_complex_abs.cc", per_output(SPECIAL)),
    "Angle": ("atan2(b, a): core/kernels/cwise_op_arg.cc", per_output(SPECIAL)),
    "Conj": ("0 - b: core/kernels/cwise_op_conj.cc", per_output(ADD)),
    _COMPLEX_UNFIXED_OPS: (COMPLEX_SOURCE, unknown_work_formula(COMPLEX_UNKNOWN)),
}, register=complex_formula)  # fmt: skip
no_arithmetic("the parts of a complex number", "Real", "Imag", "Complex")
