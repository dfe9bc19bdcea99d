"""The work of matrix factorisations and triangular systems, by the algorithms of LAPACK, as exact integers.

A factorisation is no product of matrices: its multiplies and adds are counted one by one, and ``mac`` is 0, as in every
counter here. Square matrices are n x n, right-hand sides are n x k.

Source: Anderson and Dongarra, LAPACK working note 41, "Installation Guide for LAPACK", appendix C (operation counts), whose
multiplications include divisions and square roots; here each has its own component. Loops in the tests do the same.
"""

from __future__ import annotations

from ..core.work import Work


def triangular_solve(n: int, k: int, unit: bool = False) -> Work:
    """TRSM: x_i = (b_i - sum of l_ij x_j over j < i) / l_ii; a unit diagonal divides nothing."""
    below = k * n * (n - 1) // 2
    return Work(mul=below, add=below, div=0 if unit else k * n)


def lu(m: int, n: int) -> Work:
    """GETRF, m x n: per column the largest pivot (cmp), its reciprocal (div), the column times it, and the rest less the product
    of column and row."""
    steps = range(min(m, n))
    column = sum(m - 1 - j for j in steps)
    rest = sum((m - 1 - j) * (n - 1 - j) for j in steps)
    return Work(mul=column + rest, add=rest, div=len(steps), cmp=column)


def lu_solve(n: int, k: int) -> Work:
    """GETRS: a unit lower triangle, then an upper one."""
    return triangular_solve(n, k, unit=True) + triangular_solve(n, k)


def solve(n: int, k: int) -> Work:
    """GESV: GETRF, then GETRS (``lu``, ``lu_solve``)."""
    return lu(n, n) + lu_solve(n, k)


def cholesky(n: int) -> Work:
    """POTRF: l_jj = sqrt(a_jj - sum of l_jk^2), l_ij = (a_ij - sum of l_ik l_jk) / l_jj, over k < j < i."""
    products = (n**3 - n) // 6
    return Work(mul=products, add=products, div=n * (n - 1) // 2, special=n)


def cholesky_solve(n: int, k: int) -> Work:
    """POTRS: two triangles."""
    return triangular_solve(n, k) * 2


def triangular_inverse(n: int) -> Work:
    """TRTRI: the reciprocals of the diagonal (div), and column by column the triangle before it times the column above the
    diagonal, times the negated reciprocal; a negation is no operation of its own there."""
    mul = sum(j * (j + 1) // 2 + j for j in range(n))
    return Work(mul=mul, add=sum(j * (j - 1) // 2 for j in range(n)), div=n)


def triangle_product(n: int) -> Work:
    """LAUUM: the lower triangle of U U^T, of a triangular U: n - j products for each of the j + 1 elements of row j."""
    return Work(mul=sum((j + 1) * (n - j) for j in range(n)), add=sum((j + 1) * (n - j - 1) for j in range(n)))


def cholesky_inverse(n: int) -> Work:
    """POTRI: TRTRI, then LAUUM (``triangular_inverse``, ``triangle_product``)."""
    return triangular_inverse(n) + triangle_product(n)


def determinant(n: int) -> Work:
    """GETRF; the product of the diagonal, times the sign of the permutation, which integers give."""
    return lu(n, n) + Work(mul=n)


def log_determinant(n: int) -> Work:
    """GETRF; of the diagonal the signs (cmp), their product times the permutation's, and the sum of log |u|."""
    return lu(n, n) + Work(cmp=2 * n, mul=n, special=n, add=max(n - 1, 0))
