"""Small networks for paddle; a worker of its environment imports this file. Each function returns a model and its input."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from tests.adapters.counters.torchstat_nets import reused

__all__ = ["reused"]


class Paired(nn.Module):
    """A layer of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = nn.Linear(3, 4)

    def forward(self, x: Any, y: Any) -> Any:
        return self.pair(x) + self.pair(y)


class Nested(nn.Module):
    """A layer below one whose name ends as X2Paddle's second names do, with one more call after another layer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(4, 4, 1, bias=False))
        self.inner__1 = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=False))

    def forward(self, x: Any) -> Any:
        return self.inner(self.inner__1(self.inner(x)))


class Unknown(nn.Module):
    """An operator that X2Paddle does not know."""

    def forward(self, x: Any) -> Any:
        return x.movedim(1, -1)


def lenet() -> Any:
    """The LeNet of paddle.flops's own documentation."""
    features = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )  # fmt: skip
    dense = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))
    return nn.Sequential(OrderedDict(features=features, fc=dense)), torch.ones(1, 1, 28, 28)


def numbered() -> Any:
    """A layer of weights whose name is a number, and no name in Python."""
    return nn.Sequential(nn.Linear(3, 4)), torch.ones(2, 3)


def paired() -> Any:
    return Paired(), (torch.ones(2, 3), torch.ones(2, 3))


def nested() -> Any:
    return Nested(), torch.ones(1, 4, 7, 5)


def unknown() -> Any:
    return nn.Sequential(Unknown()), torch.ones(2, 3, 4)


def tokens() -> Any:
    return nn.Sequential(nn.Embedding(7, 3)), torch.ones(2, 5, dtype=torch.int64)


def transposed() -> Any:
    return nn.Sequential(nn.ConvTranspose2d(4, 6, 2, stride=2)), torch.ones(1, 4, 5, 3)


def elementwise() -> Any:
    pools = nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(nn.BatchNorm2d(3), nn.LeakyReLU(), nn.Softmax(-1), *pools), torch.ones(2, 3, 10, 10)


def recurrent() -> Any:
    return nn.Sequential(nn.GRU(3, 4, batch_first=True)), torch.ones(2, 5, 3)
