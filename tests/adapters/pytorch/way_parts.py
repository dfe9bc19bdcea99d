"""What the ways to run a PyTorch model are made of: a small network, and its sizes, which differ from each other, so that no two
ways to be wrong give the same number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

BATCH, WIDE, NARROW = 4, 64, 8
LINEAR = BATCH * WIDE * NARROW
"""Multiply-adds of one Linear of 64 x 8 on (4, 64)."""


class Way(NamedTuple):
    """``make()`` returns (model, inputs); ``macs`` are the multiply-adds of one call."""

    make: Callable[[], Any]
    macs: int


def x() -> torch.Tensor:
    return torch.ones(BATCH, WIDE)


def image() -> torch.Tensor:
    return torch.ones(1, 3, 8, 8)


CONV = 5 * 3 * 3 * 3 * 6 * 6
"""Multiply-adds of Conv2d(3, 5, 3) on (1, 3, 8, 8)."""


class Net(nn.Module):
    """Linear, relu, Linear: 64 -> 8 -> 64."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDE, NARROW), nn.Linear(NARROW, WIDE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


class Custom(torch.autograd.Function):
    """A program's own product, with gradients of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight = ctx.saved_tensors
        return gradients[0] @ weight.t(), x.t() @ gradients[0]
