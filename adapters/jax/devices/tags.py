"""Numbers the equations of a JAX program: XLA keeps the number in the metadata name of each instruction that it makes of one.

walk.py finds an equation's instructions by it. A program that is called at two places is written twice, so that each call has
numbers of its own.
"""

from __future__ import annotations

import re
from typing import Any

from .. import records

_TAG = re.compile(r"eq(\d+)->")
"""A scope with an arrow is no layer (records.layer_of)."""


def tag_equations(closed: Any) -> tuple[Any, dict[int, str]]:
    """The program with a number on each equation, and the primitive of each number."""
    numbers: dict[int, str] = {}
    return _program(closed, numbers), numbers


def tag_of(name: str) -> int | None:
    """The number of the equation of which an instruction with this name was made: the innermost. None without one."""
    found = _TAG.findall(name)
    return int(found[-1]) if found else None


def _program(value: Any, numbers: dict[int, str]) -> Any:
    if hasattr(value, "jaxpr"):
        return value.replace(jaxpr=_program(value.jaxpr, numbers))
    return value.replace(eqns=[_equation(equation, numbers) for equation in value.eqns])


def _equation(equation: Any, numbers: dict[int, str]) -> Any:
    number = len(numbers)
    numbers[number] = equation.primitive.name
    source = equation.source_info
    params = {name: _param(value, numbers) for name, value in equation.params.items()}
    return equation.replace(
        params=params, source_info=source.replace(name_stack=source.name_stack.extend(f"eq{number}->"))
    )


def _param(value: Any, numbers: dict[int, str]) -> Any:
    if not records.is_program(value):
        return value
    if isinstance(value, (tuple, list)):
        items = [_param(item, numbers) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return _program(value, numbers)
