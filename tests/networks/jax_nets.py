"""Random networks in JAX: a function of its weights and a value."""

from __future__ import annotations

from random import Random
from typing import Any

import jax.numpy as jnp

from .block import Block, along, chain, named, start
from .jax_blocks import ALL, within
from .net import Net


def draw(seed: int) -> Net:
    """The network of a seed."""
    rng = Random(seed)
    shape = start(rng)
    blocks: list[Block] = []
    while not blocks:
        blocks = chain(rng, ALL, shape, 4)
    whole = within(blocks)

    def model(weights: Any, value: Any) -> Any:
        return whole(weights, value)

    training = all(b.steps for b in blocks) and rng.random() < 0.5
    cost, _ = along(blocks, False)
    return Net("jax", seed, model, (whole.weights(), jnp.ones(shape)), cost, training, named(blocks))
