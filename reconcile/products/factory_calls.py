"""``parse_factory_call``: reads a model that is named with the arguments of what makes it, in a row of an audit or in decode."""

from __future__ import annotations

import ast
import json
from typing import Any

from ..core.errors import UsageError, short


def parse_factory_call(text: str) -> tuple[str, dict[str, Any]]:
    """The model and the arguments of its factory: ``timm:NAME(img_size=256)``. Raises UsageError for what is no such text."""
    model, bracket, rest = text.partition("(")
    if not bracket:
        return text, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        if not all(keyword.arg for keyword in call.keywords):
            raise ValueError
        arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        plain = all(isinstance(value, (str, int, float, bool, type(None))) for value in arguments.values())
        json.dumps(arguments, allow_nan=False)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        plain = False
    if not plain:
        raise UsageError(
            f"{short(text)} cannot be read: write arguments as in timm:NAME(img_size=256), each a number or a text."
        )
    return model.strip(), arguments
