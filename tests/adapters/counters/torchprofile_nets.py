"""Small networks for torchprofile; a worker of its environment imports this file. Each function returns a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Products(nn.Module):
    """A product that its table lacks, and one that it has."""

    def forward(self, x: Any) -> Any:
        return torch.mm(x, torch.ones(3, 5)).sum() + (x @ torch.ones(3)).sum()


def products() -> Any:
    return Products(), torch.ones(2, 3)


def in_place() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(), nn.LeakyReLU(inplace=True)), torch.ones(2, 3)


def transposed() -> Any:
    return nn.ConvTranspose1d(6, 6, 2, stride=2, groups=2, bias=False), torch.ones(1, 6, 5)
