"""Small networks for pthflops; a worker of its environment imports this file. Each function returns a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Two(nn.Module):
    """A model of two inputs and two results."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: Any, y: Any) -> Any:
        z = self.layer(x)
        return z + y, z


class Sized(nn.Module):
    """It asks a tensor for all of its sizes by a method, which returns a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(x).reshape(x.size()) * 2


def linear() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.ones(2, 3)


def transposed() -> Any:
    return nn.Sequential(nn.ConvTranspose1d(6, 6, 2, stride=2, groups=2, bias=False)), torch.ones(1, 6, 5)


def two() -> Any:
    return Two(), (torch.ones(2, 3), torch.ones(2, 4))


def sized() -> Any:
    return Sized(), torch.ones(2, 3, 4)
