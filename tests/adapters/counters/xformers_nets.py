"""Small networks for xformers' profiler; a worker of its environment imports this file. Each returns a model and its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

attention = nn.functional.scaled_dot_product_attention
HEADS = torch.ones(2, 3, 5, 4)


class Does(nn.Module):
    """A module that calls one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def net(function: Callable[..., Any], *inputs: Any) -> Any:
    return Does(function), inputs


def broadcast() -> Any:
    return net(torch.mul, torch.ones(3, 1), torch.ones(3, 4))


def of_whole_numbers() -> Any:
    return net(lambda x: (x + x).double(), torch.ones(2, 3, dtype=torch.int64))


def products_of_whole_numbers() -> Any:
    return net(torch.mm, torch.ones(2, 3, dtype=torch.int64), torch.ones(3, 4, dtype=torch.int64))


def half() -> Any:
    return net(torch.mm, torch.ones(2, 3, dtype=torch.bfloat16), torch.ones(3, 4, dtype=torch.bfloat16))


def attends() -> Any:
    return net(lambda q: attention(q, q, q), HEADS)


def causal() -> Any:
    return net(lambda q: attention(q, q, q, is_causal=True), HEADS)


def causal_of_more() -> Any:
    """Two queries, five keys."""
    return net(lambda q, k: attention(q, k, k, is_causal=True), HEADS[:, :, :2], HEADS)


def causal_of_one() -> Any:
    """An odd number of operations."""
    return net(lambda q, v: attention(q, q, v, is_causal=True), torch.ones(1, 1, 5, 4), torch.ones(1, 1, 5, 3))


def grouped() -> Any:
    """Six heads of queries for three of keys and values."""
    query = torch.ones(2, 6, 5, 4)
    return net(lambda q, k: attention(q, k, k, enable_gqa=True), query, HEADS)


def wide() -> Any:
    """Values wider than keys: PyTorch takes several operators on a CPU."""
    return net(lambda q, v: attention(q, q, v), HEADS, torch.ones(2, 3, 5, 7))


def in_inference() -> Any:
    return nn.MultiheadAttention(4, 2, batch_first=True), (torch.ones(2, 5, 4),) * 3
