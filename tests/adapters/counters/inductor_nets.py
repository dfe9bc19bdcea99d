"""Small networks for inductor; a worker imports this file. Each function returns a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Mixed(nn.Module):
    """A convolution, a transposed one, a layer that runs three times, and a product in a function."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 6, 3, groups=2)
        self.transposed = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        x = self.transposed(self.convolution(x))
        for _ in range(3):
            x = torch.relu(self.layer(x))
        return x @ x.transpose(-1, -2)


class Attention(nn.Module):
    """One projection, and attention as PyTorch's function."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        q = self.project(x)
        return nn.functional.scaled_dot_product_attention(q, q, q)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def aside(layer: Any, x: Any) -> Any:
    """The layer, where torch.compile does not look."""
    return layer(x)


class Broken(nn.Module):
    """A product in each of two graphs, and one between them."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between, self.after = nn.Linear(3, 4), nn.Linear(4, 6), nn.Linear(6, 5)

    def forward(self, x: Any) -> Any:
        x = self.before(x)
        x = aside(self.between, x)
        return self.after(x)


class Dots(nn.Module):
    """Dot products as a product of matrices: inductor makes multiplications and a sum of them on a CPU."""

    def forward(self, x: Any, y: Any) -> Any:
        return torch.bmm(x, y)


def mixed() -> Any:
    return Mixed(), torch.ones(2, 4, 6, 6)


def attention() -> Any:
    return Attention(), torch.ones(2, 3, 5, 4)


def broken() -> Any:
    return Broken(), torch.ones(2, 5, 3)


def dots() -> Any:
    return Dots(), (torch.ones(2, 1, 3), torch.ones(2, 3, 1))


def recurrent() -> Any:
    return nn.GRU(3, 4), torch.ones(2, 5, 3)
