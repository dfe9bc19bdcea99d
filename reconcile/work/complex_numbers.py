"""The work of sums and products of complex numbers, counted in operations on their real and imaginary parts.

A sum is two adds, a product (a + bi)(c + di) four multiplies and two adds, and a multiply-add of a matrix product four
multiply-adds onto two accumulators. A complex operand makes every operand complex: the frameworks convert the real ones.
"""

from __future__ import annotations

from ..core.records import Op
from ..core.work import UnknownWork, Work, complex_formula, find
from .elementwise import ADD, MUL

PRODUCT = MUL * 4 + ADD * 2


def complex_work(work: Work) -> Work:
    """Work on complex numbers of an expression that has this work on real ones. Raises UnknownWork for anything except sums
    and products."""
    if work.div or work.cmp or work.special:
        raise UnknownWork("more than sums and products, of complex numbers")
    return Work(mac=4 * work.mac, accumulators=2 * work.accumulators) + ADD * (2 * work.add) + PRODUCT * work.mul


def polynomials(*ops: str, source: str) -> None:
    """Register formulas for ops that only add and multiply: their work on complex numbers follows from that on real ones."""
    complex_formula(*ops, source=f"the real form's sums and products, of complex numbers: {source}")(_polynomial)


def _polynomial(op: Op) -> Work:
    real = find(op.op)
    if real is None:
        raise UnknownWork(f"no work formula for {op.op}")
    return complex_work(real.compute(op))
