"""The arguments of a call in one line, for a reader of a report."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from reconcile.adapters.shared import nested


class Sample(NamedTuple):
    """What a library hands to its models: of many fields a call gives some."""

    image: Any = None
    mask: Any = None
    radar: Any = None


@pytest.mark.parametrize(
    ("positional", "named", "line"),
    [
        ((1, 2), {"mask": 3}, "<1>, <2>, mask=<3>"),
        (((1, None),), {}, "(<1>, None)"),
        (([1], {"a": 2}), {}, "[<1>], {a: <2>}"),
        ((Sample(image=1),), {}, "Sample(image=<1>)"),
        ((Sample(1, radar=(2,)), True), {}, "Sample(image=<1>, radar=(<2>)), True"),
    ],
)
def test_arguments_in_one_line(positional: Any, named: Any, line: str) -> None:
    def number(value: Any) -> bool:
        return type(value) is int

    assert nested.describe_arguments((positional, named), number, lambda value: f"<{value}>") == line
