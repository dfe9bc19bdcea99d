"""Ordinary ways in which a PyTorch network takes values from outside of its operators: none of them is work.

Sizes and tables by numpy, random numbers of Python and numpy, a number that leaves by ``item()``, caches, counts of calls, and
memory that is looked at by numpy. The trace calls such a network a second time, with other values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import torch
from torch import nn

from .block import Block, Makes, Shape, free, repeated, weighed
from .torch_layers import Apply

make = MAKES = Makes()


def _table(steps: int, width: int) -> Any:
    """Positions as sines, in float64."""
    rates = 1 / 100 ** (np.arange(width) / width)
    return np.sin(np.arange(steps)[:, None] * rates)


def _place(x: Any) -> Any:
    """A table of numpy, made in each call."""
    return torch.from_numpy(_table(x.shape[-2], x.shape[-1])).to(x.dtype)


def _kept(m: Any, x: Any) -> Any:
    """A table that the first call makes, as of rotary positions."""
    if getattr(m, "table", None) is None:
        m.table = torch.tensor(_table(x.shape[-2], x.shape[-1]).tolist())
    return x + m.table


def _counted(m: Any, x: Any) -> Any:
    """A factor that changes from call to call."""
    m.calls = getattr(m, "calls", 0) + 1
    return x * (1 - 0.5**m.calls)


def _followed(m: Any, x: Any) -> Any:
    """Statistics in a buffer, which the call reads and writes."""
    m.layer.mean.mul_(0.9).add_(x.detach().mean(), alpha=0.1)
    return x - m.layer.mean


def _sorted(m: Any, x: Any) -> Any:
    """Rows in the order of their sums, and back, by lists of Python."""
    order = x.detach().flatten(1).sum(1).argsort().tolist()
    back = sorted(range(len(order)), key=order.__getitem__)
    return x[order].tanh()[back]


def _written(m: Any, x: Any) -> Any:
    """Memory without values, in which elements and slices are set."""
    held = torch.empty(x.shape)
    held[...] = x
    held[0, ..., 0] = 0.5
    return held


def _halves(m: Any, x: Any) -> Any:
    """Parts whose sizes are values."""
    first = int((x.detach() == x.detach()).sum()) % x.shape[-1]
    return torch.cat(x.split([first, x.shape[-1] - first], -1)[::-1], -1)


ORDINARY: dict[str, Callable[[Any, Any], Any]] = {
    "numpy_size": lambda m, x: x / np.sqrt(np.prod(x.shape)),
    "log_size": lambda m, x: x * math.log(1 + x.shape[0]) / math.sqrt(x.shape[-1]),
    "numpy_table": lambda m, x: x + _place(x),
    "list_table": lambda m, x: x + torch.tensor([0.1 * i for i in range(x.shape[-1])]),
    "kept_table": _kept,
    "numpy_mask": lambda m, x: x.masked_fill(torch.from_numpy(np.tril(np.ones(x.shape[-2:])) == 0), -1.0),
    "python_draw": lambda m, x: x * random.uniform(0.5, 1),
    "numpy_draw": lambda m, x: x + torch.from_numpy(np.random.normal(size=x.shape[-1])).to(x.dtype),
    "torch_draw": lambda m, x: x + torch.randn_like(x) * torch.rand(()).item(),
    "drop_path": lambda m, x: x if random.random() < 0.5 else x * torch.bernoulli(torch.full((x.shape[0],), 0.5)).view(
        -1, *[1] * (x.dim() - 1)
    ),
    "item_back": lambda m, x: x / (x.detach().abs().max().item() or 1.0),
    "item_scaled": lambda m, x: x * (1 / (1 + x.detach().abs().max().item())),
    "item_branch": lambda m, x: x @ x.mT if x.detach().abs().sum().item() < 0 else x.tanh(),
    "item_check": lambda m, x: x if bool((x == x).all()) else x.nan_to_num(),
    "numpy_check": lambda m, x: x if np.isfinite(x.detach().numpy()).any() else x.relu(),
    "numpy_shared": lambda m, x: x + torch.from_numpy(x.detach().numpy()),
    "numpy_copied": lambda m, x: x + torch.from_numpy(x.detach().contiguous().numpy().copy()),
    "counted": _counted,
    "sorted": _sorted,
    "halves": _halves,
    "written_cells": _written,
    "chosen": lambda m, x: torch.where(x > 0, x, x.new_tensor(0.25)),
    "indexed": lambda m, x: x.index_add(0, torch.arange(len(x) - 1, -1, -1), x, alpha=0.5),
    "nonzero": lambda m, x: x.flatten()[(x.flatten() == x.flatten()).nonzero()[:, 0]].view(x.shape),
}  # fmt: skip


@make
def ordinary(rng: Any, shape: Shape) -> Block | None:
    kind = rng.choice(sorted(ORDINARY))
    return Block(kind, Apply(ORDINARY[kind]), shape, free)


class Mean(nn.Module):
    """A buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))


@make
def followed(rng: Any, shape: Shape) -> Block | None:
    return Block("running_mean", Apply(_followed, layer=Mean()), shape, free)


@make
def experts(rng: Any, shape: Shape) -> Block | None:
    """Each row goes to the expert that its place names, by lists of indices: one product per row in all."""
    width, count = shape[-1], rng.randint(2, 3)
    parts = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(count))

    def run(m: Any, x: Any) -> Any:
        rows, found = x.reshape(-1, width), torch.zeros(prod(shape) // width, width)
        for expert, part in enumerate(m.parts):
            chosen = (torch.arange(len(rows)) % count == expert).nonzero()[:, 0]
            if len(chosen.tolist()):
                found = found.index_add(0, chosen, part(rows[chosen]))
        return found.view(shape)

    return Block("experts", Apply(run, parts=parts), shape, weighed(prod(shape) * width), True)


@make
def normalised(rng: Any, shape: Shape) -> Block | None:
    """A weight that each call sets to a norm that it has measured, and one layer used as often as a number says."""
    width, times = shape[-1], rng.randint(1, 3)
    layer = nn.Linear(width, width, bias=False)

    def run(m: Any, x: Any) -> Any:
        scale = m.layer.weight.detach().norm().item() or 1.0
        for _ in range(round(times + 0 * scale)):
            x = m.layer(x / scale)
        return x

    return Block(f"normalised_{times}", Apply(run, layer=layer), shape, repeated(prod(shape) * width, times), True)
