"""A check, before sympy evaluates a string as Python, that it is only arithmetic on tensor sizes, and that no number on the way
gets too long.
"""

from __future__ import annotations

import ast
import re

from ..model_file import words

LONGEST = 10_000
"""The most characters of an expression."""

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
"""Names of sympy and of torch.utils._sympy.functions that occur in sizes; sympy's Lambda and S do not."""

SYMBOL = re.compile(r"[a-z]{1,2}\d+")
TEXT = re.compile(r"\w+|-?\d*\.?\d*(e[-+]?\d{1,3})?")
"""The strings that may be quoted: a symbol's name and a number's digits. Sympy would evaluate any other one, too."""
NUMBER = re.compile(r"-?\.?\d")
"""The start of a string that is a number."""
POWERS = frozenset(("Pow", "PowByNatural", "FloatPow", "LShift", "RShift", "RoundDecimal"))
"""Functions whose value gets as many more digits as their second argument says."""
PRECISION = 10
"""The most bits of a Float's precision argument (below 1,024)."""
BITS = 64
"""The bits assumed for the size that a symbol stands for."""
LARGEST = 1 << 18
"""The most bits of any number on the way to an expression's value, which bounds the time: the longest sum has fewer."""


def is_arithmetic(text: str) -> bool:
    """Whether an expression is one of symbols, numbers and functions of them, and none of these becomes too large:
    ``Add(Integer(1), Symbol('s0', integer=True))``, or ``Max(2, 3*s0 + 1)``."""
    if len(text) > LONGEST:
        return False
    try:
        tree = ast.parse(text, mode="eval")
        return all(_is_plain(node) for node in ast.walk(tree)) and _bits(tree.body)[0] <= LARGEST
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) or TEXT.fullmatch(str(node.value)) is not None
    if isinstance(node, ast.Name):
        return node.id in FUNCTIONS or SYMBOL.fullmatch(node.id) is not None
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and all(isinstance(k.value, ast.Constant) for k in node.keywords)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):  # a text times a number is a long text
        return not any(
            isinstance(each, ast.Constant) and isinstance(each.value, str) for each in ast.iter_child_nodes(node)
        )
    return isinstance(node, OPERATIONS)


def _bits(node: ast.AST) -> tuple[int, int]:
    """An upper bound of the bits of a value and of all values on the way to it, and the part of it that its numbers contribute.

    Sums and products add bits, a power multiplies them by its exponent. A symbol in an exponent stays a symbol.
    """
    if isinstance(node, ast.Constant):
        return _of_constant(node.value)
    if isinstance(node, ast.Name):
        return BITS, 0
    parts = [_bits(part) for part in _operands(node)]
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if name == "Float" and any(bits > PRECISION for bits, _ in parts[1:]):
        return LARGEST + 1, LARGEST + 1
    found, numbers = (1 + sum(each) for each in zip(*parts)) if parts else (1, 1)  # noqa: B905
    if len(parts) > 1 and (name in POWERS or isinstance(getattr(node, "op", None), (ast.Pow, ast.LShift, ast.RShift))):
        exponent = max(bits for _, bits in (parts if getattr(node, "keywords", ()) else parts[1:]))
        found, numbers = (each << min(exponent, LARGEST.bit_length()) for each in (found, numbers))
    return min(found, LARGEST + 1), min(numbers, LARGEST + 1)


def _operands(node: ast.AST) -> list[ast.expr]:
    """The operands of an operation or a call, in order."""
    if isinstance(node, ast.Call):
        return [*node.args, *(keyword.value for keyword in node.keywords)]
    return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]


def _of_constant(value: object) -> tuple[int, int]:
    """Bits of a number, or of a string that is a number or a symbol's name."""
    if isinstance(value, str):
        if not NUMBER.match(value):
            return BITS, 0
        mantissa, _, exponent = value.lower().partition("e")
        bits = 4 * (len(mantissa) + abs(int(exponent or 0)))
    else:
        bits = int(abs(value)).bit_length() if isinstance(value, (int, float)) else 0
    return min(bits, LARGEST + 1), min(bits, LARGEST + 1)
