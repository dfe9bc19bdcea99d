"""Makers of formulas that many tables share: work per element, reductions, a routine per matrix, and work that is not fixed.

A formula that is made here belongs to the module that calls the maker (``__module__``): docs/ops.md lists formulas by module.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

from ..core.records import Op
from ..core.work import SINGLE_COMPONENTS, Compute, UnknownWork, Work, complex_formula, formula
from . import elementwise, linalg
from .shapes import n_in, n_out, squares

P = ParamSpec("P")


def _of_caller(maker: Callable[P, Compute]) -> Callable[P, Compute]:
    """A decorator: the formula that the maker returns belongs to the module that calls it."""

    @functools.wraps(maker)
    def make(*args: P.args, **kwargs: P.kwargs) -> Compute:
        compute = maker(*args, **kwargs)
        compute.__module__ = sys._getframe(1).f_globals["__name__"]
        return compute

    return make


@_of_caller
def per_output(each: Work) -> Compute:
    """``each`` for every element of the first output."""
    return lambda op: each * n_out(op)


@_of_caller
def per_input(each: Work, index: int = 0) -> Compute:
    """``each`` for every element of input ``index``."""
    return lambda op: each * n_in(op, index)


@_of_caller
def reduction(step: Work) -> Compute:
    """``step`` for every element of input 0 after the first of each output."""
    return lambda op: elementwise.reduction(n_in(op), n_out(op), step)


@_of_caller
def per_matrix(work: Callable[[int], Work]) -> Compute:
    """``work`` of n for each of the n x n matrices of input 0."""

    def compute(op: Op) -> Work:
        count, n = squares(op)
        return work(n) * count

    return compute


@_of_caller
def per_column(work: Callable[[int, int], Work], index: int = 0) -> Compute:
    """``work`` of n, the size of the square matrices of input ``index``, and of all the right-hand sides: as many as the solution
    has elements, by n."""

    def compute(op: Op) -> Work:
        n = squares(op, index)[1]
        return work(n, n_out(op) // n if n else 0)

    return compute


@_of_caller
def solve() -> Compute:
    """A (*, n, n), B (*, n, k), (*, k, n) if not left, or (*, n): every matrix is factorised once, and every column solved."""
    factorise, columns = per_matrix(lambda n: linalg.lu(n, n)), per_column(linalg.lu_solve)
    return lambda op: factorise(op) + columns(op)


@_of_caller
def unknown_work_formula(sentence: str) -> Compute:
    """The formula of ops without products of matrices whose other work is unknown: ``sentence`` says why, with {} for the op."""

    def compute(op: Op) -> Work:
        n_in(op)
        raise UnknownWork(sentence.format(op.op), SINGLE_COMPONENTS)

    return compute


COMPLEX_UNKNOWN = "{} has no formula on complex numbers"
COMPLEX_SOURCE = "no products of matrices; the rest has no formula on complex numbers"
"""For ``unknown_work_formula`` of ops without products of matrices that have a formula on real numbers only, and its source."""


def register_unfixed(reason: str, names: str, prefix: str = "") -> None:
    """Register ops without products of matrices, on real and complex numbers, with the reason why their other work is unknown.

    Each of the ``names`` begins with ``prefix``.
    """
    ops = [prefix + name for name in names.split()]
    source = f"no products of matrices; the rest is not fixed: {reason}"
    compute = unknown_work_formula(f"the work of {{}} is not fixed: {reason}")
    compute.__module__ = sys._getframe(1).f_globals["__name__"]
    for register in (formula, complex_formula):
        register(*ops, source=source)(compute)
