"""Whether a text is arithmetic of sizes as sympy writes it, before sympy evaluates it as Python."""

from __future__ import annotations

import ast
import re

from ..shared.model_file import words

LONGEST = 10_000
"""Characters of an expression."""

OPERATIONS = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.keyword,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.boolop,
    ast.expr_context,
)

FUNCTIONS = words("""
    Symbol Integer Rational Float Add Mul Pow Max Min Mod Abs And Or Not Xor Eq Ne Lt Le Gt Ge Equality Unequality LessThan
    GreaterThan StrictLessThan StrictGreaterThan Piecewise ExprCondPair ITE BooleanTrue BooleanFalse Infinity NegativeInfinity
    sqrt floor ceiling true false oo int_oo FloorDiv ModularIndexing Where PythonMod CleanDiv CeilToInt FloorToInt CeilDiv
    LShift RShift PowByNatural FloatPow FloatTrueDiv IntTrueDiv IsNonOverlappingAndDenseIndicator TruncToFloat TruncToInt
    RoundToInt RoundDecimal ToFloat Identity""")
"""Of sympy's names and of torch.utils._sympy.functions, those that sizes are made of; sympy's Lambda or S are not."""

SYMBOL = re.compile(r"[a-z]{1,2}\d+")
TEXT = re.compile(r"\w+|-?\d*\.?\d*(e[-+]?\d+)?")
"""What may be quoted: a symbol's name and a number's digits. Anything else would be evaluated in its turn."""


def is_arithmetic(text: str) -> bool:
    """Whether an expression is one of symbols, numbers and functions of them:
    ``Add(Integer(1), Symbol('s0', integer=True))``, or ``Max(2, 3*s0 + 1)``."""
    if len(text) > LONGEST:
        return False
    try:
        return all(_is_plain(node) for node in ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) or TEXT.fullmatch(str(node.value)) is not None
    if isinstance(node, ast.Name):
        return node.id in FUNCTIONS or SYMBOL.fullmatch(node.id) is not None
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and all(isinstance(k.value, ast.Constant) for k in node.keywords)
    return isinstance(node, OPERATIONS)
