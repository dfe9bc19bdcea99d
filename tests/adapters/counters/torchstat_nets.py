"""Small networks for torchstat; a worker of its environment imports this file. Each function returns a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Reused(nn.Module):
    """One convolution that runs three times, and one product in a function."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        for _ in range(3):
            x = self.convolution(x)
        return x @ torch.ones(5, 6)


class Shrinking(nn.Module):
    """One convolution that runs on two shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3)

    def forward(self, x: Any) -> Any:
        return self.convolution(self.convolution(x))


class Paired(nn.Module):
    """A layer of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = nn.Bilinear(3, 4, 5, bias=False)

    def forward(self, x: Any, y: Any) -> Any:
        return self.pair(x, y)


class Mine(nn.Conv2d):
    """A class of its own, derived from one that the model has as well."""


def reused() -> Any:
    return Reused(), torch.ones(2, 4, 7, 5)


def shrinking() -> Any:
    return Shrinking(), torch.ones(1, 4, 7, 5)


def paired() -> Any:
    return Paired(), (torch.ones(2, 3), torch.ones(2, 4))


def raised() -> Any:
    return nn.Sequential(nn.Upsample(scale_factor=2)), torch.ones(2, 6, 5, 4)


def transposed() -> Any:
    return nn.Sequential(nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2)), torch.ones(2, 6, 5, 4)


def dense() -> Any:
    return nn.Sequential(nn.Linear(3, 4)), torch.ones(2, 3)


def of_steps() -> Any:
    return nn.Sequential(nn.Linear(3, 4)), torch.ones(2, 5, 3)


def mine() -> Any:
    return nn.Sequential(Mine(3, 3, 1), nn.Conv2d(3, 3, 1)), torch.ones(1, 3, 4, 4)


def derived() -> Any:
    return nn.Sequential(nn.Conv2d(3, 3, 1), Mine(3, 3, 1)), torch.ones(1, 3, 4, 4)


def recurrent() -> Any:
    return nn.Sequential(nn.GRU(3, 4)), torch.ones(2, 5, 3)
