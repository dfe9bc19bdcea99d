"""Texts that sympy would evaluate as Python: arithmetic of sizes, and nothing that runs code or takes for ever."""

from __future__ import annotations

import time

import pytest

from reconcile.products.files.pytorch.arithmetic import is_arithmetic

SIZED = (
    "Pow(Symbol('s0', integer=True), Integer(2))", "PowByNatural(Symbol('u0', integer=True), Integer(3))", "s0**2 * s1**-1",
    "Pow(Symbol('s0'), Rational(1, 2), evaluate=False)", "2**s0", "LShift(Integer(1), Integer(31))", "1 << 40", "2**1000",
    "Float('1.5e300', precision=53)", "Symbol('e999999999')", "9223372036854775807 * s0", "s0" + "+s0" * 200,
    "(" * 90 + "s0" + ")" * 90,
)  # fmt: skip
ENDLESS = (
    "9**9**9**9", "Pow(9, Pow(9, 9))", "Pow(9, e=387420489)", "Pow(e=387420489, b=9)", "(s0 + 2)**387420489",
    "9**" * 2000 + "9", "**".join(["(9"] * 90) + ")" * 90, "((9**999)**999)**999", "2**(0*s0 + 2**62)", "1 << 2**40",
    "1 >> 2**40", "LShift(1, 2**40)", "RShift(1, 2**40)", "PowByNatural(9, 2**40)", "FloatPow(9, 2**40)",
    "RoundDecimal(s0, 2**40)",
    "Pow(Integer(2), Rational(2**40, 3))", "Float('1e999999999')", "Float('1E999999999')", "Rational('1e-999999999')",
    "Integer('1e999999999')", "Float('1.5', 999999999)", "Float('1.5', precision=999999999)", "Float('1.5', 99999*99999)",
    "'s0' * 9999999999", "9999999999 * 's0'", "1e999", "-" * 9000 + "1",
)  # fmt: skip
"""What takes hours, or all memory, to evaluate."""


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Add(Integer(1), Symbol('s0', integer=True))", True),
        ("Max(2, 3*s0 + 1)", True),
        ("Float('1.5e-3', precision=53)", True),
        ("FloorDiv(Symbol('s77', positive=True, integer=True), Integer(2))", True),
        ("StrictGreaterThan(Symbol('u0', integer=True), Integer(1))", True),
        ("Lambda(Symbol('x'), Symbol('x'))", False),
        ("S('print')", False),
        ("Symbol('x').func", False),
        ("Integer('print()')", False),
        ("print()", False),
        ("(lambda: 1)()", False),
        ("[1 for x in s0]", False),
        ("s0[0]", False),
        ("f'{s0}'", False),
        ("1+" * 6000 + "1", False),
        ("(" * 500 + ")" * 500, False),
        *((text, True) for text in SIZED),
        *((text, False) for text in ENDLESS),
    ],
)
def test_arithmetic(text: str, plain: bool) -> None:
    start = time.process_time()
    assert is_arithmetic(text) is plain
    assert time.process_time() - start < 2
