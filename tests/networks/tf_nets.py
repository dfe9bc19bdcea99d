"""Random networks in TensorFlow."""

from __future__ import annotations

from random import Random
from typing import Any

import tensorflow as tf

from .block import Block, along, chain, free, named, start
from .net import Net
from .tf_layers import L
from .tf_ways import ALL


class Chain(tf.keras.Model):
    """The blocks one after another."""

    def __init__(self, blocks: list[Block]) -> None:
        super().__init__()
        self.blocks = [block.part for block in blocks]

    def call(self, value: Any) -> Any:
        for block in self.blocks:
            value = block(value)
        return value


def draw(seed: int) -> Net:
    """The network of a seed."""
    rng = Random(seed)
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(rng.randrange(2**31))
    shape = start(rng)
    blocks: list[Block] = []
    ids = len(shape) == 3 and rng.random() < 0.25
    if ids:
        blocks.append(Block("embedding", L.Embedding(7, shape[2]), shape, free, True))
    while len(blocks) < 1 + ids:
        blocks += chain(rng, ALL, shape, 4)
    value = tf.zeros(shape[:2], tf.int32) if ids else tf.random.normal(shape)
    training = all(b.steps for b in blocks) and rng.random() < 0.5
    cost, _ = along(blocks, False)
    return Net("tf", seed, Chain(blocks), value, cost, training, named(blocks))
