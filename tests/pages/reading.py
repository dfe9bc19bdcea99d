"""Reading the pages: their programs, and the numbers beside what these print."""

from __future__ import annotations

import ast
import operator
import re

SLOW = "python slow"
THERE = "python there"
"""The fence of a program for the environment of its counter, which requires packages of its own."""
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}


def programs(text: str, fence: str = "python") -> list[str]:
    """The programs of a page."""
    return re.findall(rf"```{fence}\n(.*?)```", text, re.DOTALL)


def framework(code: str) -> str:
    """Which framework a program needs."""
    return next(
        (name for name in ("tensorflow", "torch") if re.search(rf"^(import|from) {name}\b", code, re.M)), "home"
    )


def numbers(code: str) -> list[tuple[int, str]]:
    """What a program prints, and the closed form beside it: ``print(...)  # 6 = 2 * 3; 8 = 2 * 4``, one per print."""
    found = []
    for line in code.splitlines():
        if line.lstrip().startswith("print("):
            _, _, said = line.partition("  # ")
            for item in said.split("; "):
                number, _, form = item.partition(" = ")
                found.append((int(number), form))
    return found


def value(form: str) -> int:
    """The value of a closed form of integers, + - * and **."""
    return _value(ast.parse(form, mode="eval").body)


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    assert isinstance(node, ast.BinOp), ast.dump(node)
    result: int = OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    return result
