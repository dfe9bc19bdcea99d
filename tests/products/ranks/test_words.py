"""How ranks are named."""

from __future__ import annotations

import pytest

from reconcile.products.ranks.words import ranks, span


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([0], "0"),
        ([0, 1, 2, 3], "0-3"),
        ([0, 4, 5, 6], "0, 4-6"),
        ([0, 2, 4, 6], "0, 2, 4, 6"),
        (list(range(0, 16, 2)), "0, 2, 4 ... 14"),
    ],
)
def test_a_span_of_ranks(numbers: list[int], text: str) -> None:
    assert span(numbers) == text
    assert ranks(numbers) == (text if len(numbers) == 1 else f"{text}  × {len(numbers)}")
