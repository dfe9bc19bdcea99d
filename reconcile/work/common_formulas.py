"""Makers of formulas that many tables share: work per element, reductions, a routine per matrix, and work that is not fixed."""

from __future__ import annotations

from collections.abc import Callable

from ..core.records import Op
from ..core.work import SINGLE, Compute, UnknownWork, Work, complex_formula, formula
from . import elementwise, linalg
from .shapes import n_in, n_out, squares


def per_output(each: Work) -> Compute:
    """``each`` for every element of the first output."""
    return lambda op: each * n_out(op)


def per_input(each: Work, index: int = 0) -> Compute:
    """``each`` for every element of input ``index``."""
    return lambda op: each * n_in(op, index)


def reduction(step: Work) -> Compute:
    """``step`` for every element of input 0 after the first of each output."""
    return lambda op: elementwise.reduction(n_in(op), n_out(op), step)


def per_matrix(work: Callable[[int], Work]) -> Compute:
    """``work`` of n for each of the n x n matrices of input 0."""

    def compute(op: Op) -> Work:
        count, n = squares(op)
        return work(n) * count

    return compute


def per_column(work: Callable[[int, int], Work], index: int = 0) -> Compute:
    """``work`` of n, the size of the square matrices of input ``index``, and of all the right-hand sides: as many as the solution
    has elements, by n."""

    def compute(op: Op) -> Work:
        n = squares(op, index)[1]
        return work(n, n_out(op) // n if n else 0)

    return compute


def solve(op: Op) -> Work:
    """A (*, n, n), B (*, n, k), (*, k, n) if not left, or (*, n): every matrix is factorised once, and every column solved."""
    return per_matrix(lambda n: linalg.lu(n, n))(op) + per_column(linalg.lu_solve)(op)


def unfixed(sentence: str) -> Compute:
    """The formula of ops without products of matrices whose other work is unknown: ``sentence`` says why, with {} for the op."""

    def compute(op: Op) -> Work:
        n_in(op)
        raise UnknownWork(sentence.format(op.op), SINGLE)

    return compute


COMPLEX_UNKNOWN = (
    "no products of matrices; the rest has no formula on complex numbers",
    unfixed("{} has no formula on complex numbers"),
)
"""The row of a table for ops without products of matrices that have a formula on real numbers only."""


def register_unfixed(reason: str, names: str, prefix: str = "") -> None:
    """Register ops without products of matrices, on real and complex numbers, with the reason why their other work is unknown.

    Each of the ``names`` begins with ``prefix``.
    """
    ops = [prefix + name for name in names.split()]
    source = f"no products of matrices; the rest is not fixed: {reason}"
    for register in (formula, complex_formula):
        register(*ops, source=source)(unfixed(f"the work of {{}} is not fixed: {reason}"))
