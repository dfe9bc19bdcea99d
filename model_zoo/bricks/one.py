"""One brick alone, in the bare framework: ``case`` names it, ``family_dense:dense``.

The layer itself is the model. Its input has the channels where the framework has them: first in PyTorch's convolutions, which
stand between two views in a family's pair.
"""

from __future__ import annotations

import importlib
from typing import Any

from reconcile.model_zoo.bricks import Brick, net
from reconcile.model_zoo.pair import Input, Pair

EXTRA = "extra"
"""The name before the colon of the bricks that no family has."""

PAIR = Pair("one", {"batch": 2, "case": "family_dense:dense", "framework": "torch"})


def bricks(model: str) -> tuple[Brick, ...]:
    """The bricks of a family's pair, or of ``extra.py``; none if the module has none."""
    path = f"bricks.{EXTRA}" if model == EXTRA else model
    found = importlib.import_module(f"reconcile.model_zoo.{path}")
    return tuple(getattr(found, "BRICKS", ()))


def brick(case: str) -> Brick:
    """The brick that a case names. Raises KeyError if there is none of that name."""
    model, _, name = case.partition(":")
    return {brick.name: brick for brick in bricks(model)}[name]


def input_of(brick: Brick, batch: int, framework: str) -> Input:
    """The layer's input in that framework, with its batch."""
    *positions, channels = brick.shape
    first = brick.channels_first and framework == "torch"
    shape = (channels, *positions) if first else brick.shape
    return Input("x", (batch, *shape), brick.dtype)


def inputs(p: Any) -> list[Input]:
    """The layer's input."""
    return [input_of(brick(p.case), p.batch, p.framework)]


def build_torch(p: Any) -> Any:
    """The layer."""
    one = brick(p.case)
    return one.torch(one.shape)


def build_tf(p: Any) -> Any:
    """A Keras model of the layer alone."""
    return net.build_keras(net.branches([brick(p.case)]), p)
