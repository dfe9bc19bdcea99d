"""Random networks in PyTorch."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import nn

from .block import Block, along, chain, free, named
from .net import WRAPPER, Net
from .torch_ways import ALL, sequence


class Chain(nn.Module):
    """The blocks one after another; of two inputs that are not one tensor, twice."""

    def __init__(self, blocks: list[Block]) -> None:
        super().__init__()
        self.parts = sequence(blocks)

    def forward(self, *given: Any) -> Any:
        found = self.parts(given[0])
        return found if given[0] is given[-1] else found + self.parts(given[-1])


def start(rng: Random) -> tuple[tuple[int, ...], bool]:
    """The shape of an input, and whether it is token ids."""
    batch = rng.randint(2, 3)
    shape = rng.choice(
        [
            (batch, rng.randint(1, 6)),
            (batch, rng.randint(2, 6), rng.randint(1, 6)),
            (batch, rng.randint(2, 6), rng.choice([2, 4, 6])),
            (batch, rng.randint(1, 4), rng.randint(3, 7), rng.randint(3, 7)),
        ]
    )
    return shape, len(shape) == 3 and rng.random() < 0.25


def draw(seed: int) -> Net:
    """The network of a seed."""
    rng = Random(seed)
    torch.manual_seed(rng.randrange(2**31))
    shape, ids = start(rng)
    blocks: list[Block] = []
    if ids:
        layer = nn.Embedding(7, shape[2])
        blocks.append(Block("embedding", layer, shape, free, True))
    while not blocks or (ids and len(blocks) < 2):
        blocks += chain(rng, ALL, shape, 5)
    value = torch.randint(0, 7, shape[:2]) if ids else torch.randn(shape)
    inputs = (value, value) if rng.random() < 0.2 else (value,)
    training = all(b.steps for b in blocks) and rng.random() < 0.6
    model = Chain(blocks)
    if not training:
        model.eval()
    cost, _ = along(blocks, False)
    doubts = (WRAPPER,) * any("wrapper" in block.name for block in blocks)
    return Net("torch", seed, model, inputs, cost, training, named(blocks) + " twice" * (len(inputs) > 1), doubts)
