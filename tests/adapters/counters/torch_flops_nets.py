"""Small networks for torch_flops; a worker of its environment imports this file. Each function returns a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Numbers(nn.Module):
    """A product whose size is computed from those of the input, which are numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4, bias=False)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        return y.reshape(y.shape[0] * y.shape[1])


class OnWeights(nn.Module):
    """The sum of the weights is computed while torch.fx makes the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: Any) -> Any:
        return self.layer(x) * torch.sqrt(self.scale)


class Many(nn.Module):
    """A forward that takes any number of tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, *given: Any) -> Any:
        return self.layer(given[0]) + given[1]


class Held(nn.Module):
    """A layer of attention: one node with modules in it, and no formula."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.head = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.encoder(x))


def biased() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.ones(2, 3)


def numbers() -> Any:
    return Numbers(), torch.ones(2, 3)


def on_weights() -> Any:
    return OnWeights(), torch.ones(2, 3)


def many() -> Any:
    return Many(), (torch.ones(2, 3), torch.ones(2, 4))


def held() -> Any:
    return Held(), torch.ones(1, 5, 4)


def without_weights() -> Any:
    return nn.Sequential(nn.ReLU()), torch.ones(2, 3)


def plain_norm() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, affine=False)), torch.ones(2, 3)


def branching() -> Any:
    class Branching(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 if x.sum() > 0 else x

    return nn.Sequential(nn.Linear(3, 4), Branching()), torch.ones(2, 3)
