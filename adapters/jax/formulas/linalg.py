"""Work formulas of JAX's Cholesky, LU and triangular solve; of other decompositions, ``fft`` and two more only that they have
no products of matrices: the rest of their work is unknown, by name."""

from __future__ import annotations

from ....core.records import Op
from ....core.work import SINGLE_COMPONENTS, UnknownWork, Work, complex_formula, formula, prod
from ....work import linalg
from ....work.shapes import attr, matrices, n_in, n_out

_LAPACK = "LAPACK working note 41; jax/_src/lax/linalg.py"


@formula("lax.cholesky", source=f"linalg.cholesky (POTRF): {_LAPACK}")
def _cholesky(op: Op) -> Work:
    *batch, n, _ = matrices(op)
    return linalg.cholesky(n) * prod(batch)


@formula("lax.lu", source=f"linalg.lu (GETRF): {_LAPACK}")
def _lu(op: Op) -> Work:
    *batch, m, n = matrices(op)
    return linalg.lu(m, n) * prod(batch)


@formula("lax.triangular_solve", source=f"linalg.triangular_solve (TRSM): {_LAPACK}")
def _triangular_solve(op: Op) -> Work:
    # A (*, n, n), B (*, n, k) if left_side, otherwise (*, k, n)
    n, elements = matrices(op)[-1], n_out(op)
    return linalg.triangular_solve(n, elements // n if n else 0, bool(attr(op, "unit_diagonal", False)))


def _list(reason: str, names: str) -> None:
    def compute(op: Op) -> Work:
        n_in(op)
        raise UnknownWork(f"the work of {op.op} is not fixed: {reason}", SINGLE_COMPONENTS)

    ops = [f"lax.{name}" for name in names.split()]
    source = f"no products of matrices; the rest is not fixed: {reason}"
    formula(*ops, source=source)(compute)
    complex_formula(*ops, source=source)(compute)


_list("the library of transforms chooses the algorithm by the length (jax/_src/lax/fft.py)", "fft")
_list("it iterates until it converges, as the data want it (LAPACK GESDD, SYEVD, GEEV)", "svd eigh eig schur")
_list(
    "LAPACK scales its reflections by the data, and blocks them by the machine (GEQRF, ORGQR, ORMQR)",
    "qr geqrf geqp3 householder_product ormqr hessenberg tridiagonal",
)
_list("its operations on single elements have no formula here", "cumlogsumexp tridiagonal_solve")
