"""Compares the independent count, with which the sweep of a library is compared, with closed forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.products.sweep.dispatch_count import DispatchCount

pytestmark = pytest.mark.frameworks


def counted(function: Any, *arguments: Any) -> int:
    with torch.no_grad(), DispatchCount() as count:
        function(*arguments)
    return count.macs


@pytest.mark.parametrize(
    ("function", "shapes", "macs"),
    [
        (torch.mm, [(3, 4), (4, 5)], 3 * 4 * 5),
        (torch.bmm, [(2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
        (torch.addmm, [(5,), (3, 4), (4, 5)], 3 * 4 * 5),
        (torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
        (torch.mv, [(3, 4), (4,)], 3 * 4),
        (torch.dot, [(7,), (7,)], 7),
        (torch.nn.functional.conv2d, [(1, 6, 8, 8), (4, 6, 3, 3)], 6 * 6 * 4 * 6 * 9),
        (torch.nn.functional.conv_transpose2d, [(1, 6, 5, 5), (6, 4, 3, 3)], 5 * 5 * 6 * 4 * 9),
        (
            torch.nn.functional.scaled_dot_product_attention,
            [(1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)],
            2 * 2 * 5 * 7 * 8,
        ),
        (torch.cdist, [(2, 40, 3), (2, 30, 3)], 2 * 40 * 30 * (3 + 2)),
        (torch.add, [(3,), (3,)], 0),
    ],
)
def test_a_kernel(function: Any, shapes: list[tuple[int, ...]], macs: int) -> None:
    assert counted(function, *(torch.ones(shape) for shape in shapes)) == macs


def test_complex_numbers_and_gradients() -> None:
    assert counted(torch.mm, torch.ones(3, 4, dtype=torch.complex64), torch.ones(4, 5, dtype=torch.complex64)) == 240
    layer, x = torch.nn.Conv2d(6, 4, 3), torch.ones(1, 6, 8, 8, requires_grad=True)
    with DispatchCount() as count:
        layer(x).sum().backward()
    assert count.macs == 3 * 6 * 6 * 4 * 6 * 9  # forward, and a gradient for either factor
