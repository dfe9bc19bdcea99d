"""Data as the text of a JSON report: a record per line if it fits, and rows of records written as they are made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import repeat
from typing import Any, Generic, TypeVar

_quoted = json.encoder.encode_basestring_ascii
_encoded = json.JSONEncoder(allow_nan=False).encode

WIDTH = 200
"""Longest line in characters; a value that is longer is split into lines."""

T = TypeVar("T")
Listed = Callable[[Callable[[Any], dict[str, Any]], Sequence[Any]], Any]
"""How rows are made of records: ``at_once``, or one by one as they are written (``made_late``)."""


def at_once(make: Callable[[T], dict[str, Any]], items: Sequence[T]) -> list[Any]:
    """Rows as a list."""
    return [make(item) for item in items]


class LateRows(Generic[T]):
    """A list of records that are made as they are written."""

    def __init__(self, make: Callable[[T], dict[str, Any]], items: Sequence[T]) -> None:
        self.make = make
        self.items = items

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.make, self.items)


def made_late(make: Callable[[T], dict[str, Any]], items: Sequence[T]) -> Any:
    """Rows that are made late if they are too many for a line, else a list."""
    return LateRows(make, items) if len(items) > WIDTH else at_once(make, items)


def layout(value: Any) -> str:
    """JSON data as the text of a report."""
    return "".join(_pieces(value, 0)) + "\n"


def plain(value: object) -> Any:
    """A value in a form that JSON can hold. JSON has no infinity or NaN, so these become the strings 'inf', '-inf', 'nan'."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value)


def _pieces(value: Any, depth: int) -> Iterator[str]:
    """JSON text in pieces, one per record; a value that does not fit on a line is split into lines."""
    if not _has_rows(value):
        yield _text(value, depth)
        return
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, LateRows):
        before = "[" + pad
        for row in value:
            yield before + _text(row, depth + 1)
            before = "," + pad
    else:
        before = ("{" if isinstance(value, dict) else "[") + pad
        children = value.items() if isinstance(value, dict) else (("", child) for child in value)
        for key, child in children:
            yield f"{before}{_quoted(key)}: " if isinstance(value, dict) else before
            yield from _pieces(child, depth + 1)
            before = "," + pad
    yield "\n" + " " * depth + ("}" if isinstance(value, dict) else "]")


def _text(value: Any, depth: int) -> str:
    """JSON text of a value without late rows, from the inside out, so that nothing is written twice; the report itself is always
    split into lines. Text of one line has no newline: a string's are escaped."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if not value or (kind is not dict and kind is not list):
        return _encoded(value)
    flat = depth > 0
    parts = []
    for key, child in value.items() if kind is dict else zip(repeat(""), value):
        inner = type(child)  # most are text or an int: no call for these
        text = _quoted(child) if inner is str else str(child) if inner is int else _text(child, depth + 1)
        flat = flat and "\n" not in text
        parts.append(f"{_quoted(key)}: {text}" if kind is dict else text)
    opening, closing = "{}" if kind is dict else "[]"
    if flat:
        line = f"{opening}{', '.join(parts)}{closing}"
        if len(line) + depth <= WIDTH:
            return line
    pad = "\n" + " " * (depth + 1)
    return f"{opening}{pad}{(',' + pad).join(parts)}\n{' ' * depth}{closing}"


def _has_rows(value: Any) -> bool:
    """Whether the value contains late rows."""
    if type(value) is dict:
        return any(map(_has_rows, value.values()))
    return any(map(_has_rows, value)) if type(value) is list else type(value) is LateRows
