"""Shapes of data from outside: what is of the shape passes, what is not is refused by its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.shapes import (
    AMOUNT,
    COUNT,
    FLAG,
    LARGEST,
    TEXT,
    Shape,
    list_of,
    make,
    or_null,
    record,
    schema_of,
    table,
)

SHAPE = Shape(record({"a": list_of(table(COUNT))}, b=or_null(AMOUNT), c=FLAG, d=TEXT))


@pytest.mark.parametrize(
    "data", [{"a": []}, {"a": [{"x": 0}], "b": None, "c": True, "d": "", "e": 3}, {"a": [], "b": -LARGEST}]
)
def test_what_is_of_the_shape(data: Any) -> None:
    assert SHAPE.find_fault(data) == ""


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ([], "its top"),
        ({}, "its top"),
        ({"a": {}}, "a"),
        ({"a": [{"x": -1}]}, "a.0.x"),
        ({"a": [{"x": 1.0}]}, "a.0.x"),
        ({"a": [{"x": True}]}, "a.0.x"),
        ({"a": [{}, {"\x1b": None}]}, "a.1.\\\\x1b"),
        ({"a": [], "b": LARGEST + 1}, "b"),
        ({"a": [], "c": 1}, "c"),
        ({"a": [], "d": 1}, "d"),
    ],
)
def test_what_is_not_is_told_by_its_place(data: Any, place: str) -> None:
    assert SHAPE.find_fault(data).startswith(f"{place}: ".replace("\\\\", "\\"))


def test_a_file_of_another_shape_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": [{"x": "' + "y" * 9999 + '"}]}')
    with pytest.raises(UsageError, match=r"^the file .*x\.json is damaged at a\.0\.x: .* Write it again\.$") as caught:
        SHAPE.read(tmp_path / "x.json", "the file", "Write it again.")
    assert len(str(caught.value)) < 500


class Kind(Enum):
    ONE = "one"


@dataclass(frozen=True)
class Part:
    kind: Kind
    amount: int | None = None


@dataclass(frozen=True)
class Whole:
    parts: Mapping[str, Part]
    names: tuple[str, ...] = ()


WHOLE = Shape(schema_of(Whole))


def test_a_dataclass_is_a_shape() -> None:
    data = {"parts": {"a": {"kind": "one", "amount": -2}, "b": {"kind": "one"}}, "names": ["x"]}
    assert WHOLE.find_fault(data) == ""
    assert make(Whole, data) == Whole({"a": Part(Kind.ONE, -2), "b": Part(Kind.ONE)}, ("x",))


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({}, "its top"),
        ({"parts": {}, "more": 1}, "its top"),
        ({"parts": {"a": {"kind": "two"}}}, "parts.a.kind"),
        ({"parts": {"a": {"kind": "one", "amount": 1.5}}}, "parts.a.amount"),
        ({"parts": {}, "names": "x"}, "names"),
    ],
)
def test_what_is_no_such_dataclass(data: Any, place: str) -> None:
    assert WHOLE.find_fault(data).startswith(f"{place}: ")
