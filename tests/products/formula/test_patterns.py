"""Periods of functions that strides, windows and pads make, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconcile.products.formula.reasons import offsets, period

STEPS = offsets(200)


def sampled(count: Callable[[int], int], first: int = 16) -> dict[int, int]:
    return {step: count(first + step) for step in STEPS}


@pytest.mark.parametrize("stride", [2, 3, 4, 5, 7, 8, 16, 32])
def test_a_stride_repeats_after_as_many_sizes(stride: int) -> None:
    assert period(sampled(lambda s: 216 * ((s - 1) // stride + 1) ** 2)) == stride


def test_a_padded_window_repeats_after_its_size() -> None:
    assert period(sampled(lambda s: -(-s // 7) * 7 * 49)) == 7


@pytest.mark.parametrize(
    "count",
    [lambda s: 512 * s * s + 3, lambda s: 7 * s**4, lambda s: s * min(s, 64), lambda s: s.bit_length()],
)
def test_others_repeat_nothing(count: Callable[[int], int]) -> None:
    assert period(sampled(count)) is None


def test_too_few_sizes_show_no_period() -> None:
    assert period({step: (16 + step) // 2 for step in offsets(6)}) is None
