"""Small networks for torchscan; a worker of its environment imports this file. Each function returns a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Beside(nn.Module):
    """A product in a layer, one in a function, and a dropout that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.drop = nn.Linear(3, 4), nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.drop(self.layer(x)) @ torch.ones(4, 5)


class Attention(nn.Module):
    """Attention with a mask, which returns the mean of its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, attn_mask=torch.zeros(5, 5))[0]


def beside() -> Any:
    return Beside(), torch.ones(2, 3)


def transposed() -> Any:
    return nn.Sequential(nn.ConvTranspose1d(6, 6, 2, stride=2, groups=2, bias=False)), torch.ones(1, 6, 5)


def parametrized() -> Any:
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))), torch.ones(2, 3)


def attention() -> Any:
    return Attention(), torch.ones(1, 5, 4)


def whole() -> Any:
    return nn.Transformer(4, 2, 1, 1, 8, batch_first=True), (torch.ones(1, 3, 4), torch.ones(1, 3, 4))
