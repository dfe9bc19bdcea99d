"""Bricks: one layer in both frameworks, and what a network is put together of.

A brick takes and gives (batch, positions..., channels) in both frameworks, so any brick can follow any other; a PyTorch
module that wants its channels first stands between two views (``channels_first``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]
"""Of a tensor without its batch: positions, then channels."""


def same(shape: Shape) -> Shape:
    """What a layer that keeps its input's shape gives."""
    return shape


def anything(_shape: Shape) -> bool:
    """Whether a layer that takes every shape of its rank takes this one."""
    return True


def nothing(_layer: Any, _module: Any) -> None:
    """The copy of a layer without weights."""


@dataclass(frozen=True, slots=True)
class Brick:
    """One layer in both frameworks.

    ``shape``: of the input it gets in its family's pair.  ``tf(name, shape)`` gives what calls the Keras layer of that
    name, ``torch(shape)`` the module, for an input of any ``shape`` that ``fits``; ``out(shape)`` is the output's.
    ``copy(layer, module)`` gives the module the layer's weights.
    """

    name: str
    shape: Shape
    tf: Callable[[str, Shape], Callable[[Any], Any]]
    torch: Callable[[Shape], Any]
    copy: Callable[[Any, Any], None] = nothing
    out: Callable[[Shape], Shape] = same
    fits: Callable[[Shape], bool] = anything
    channels_first: bool = False
    dtype: str = "float32"

    def takes(self, shape: Shape, dtype: str = "float32") -> bool:
        """Whether an input of this shape and dtype can be given to it."""
        return len(shape) == len(self.shape) and dtype == self.dtype and self.fits(shape)


def module(forward: Callable[[Any, Any], Any], **parts: Any) -> Any:
    """A PyTorch module of these parts (modules or parameters) whose forward is ``forward(self, x)``."""
    import torch

    class Block(torch.nn.Module):
        """Parts under their names, and one function that calls them."""

        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, x: Any) -> Any:
            return forward(self, x)

    return Block()


def layer(name: str, call: Callable[[Any, Any], Any], **parts: Any) -> Any:
    """A Keras layer of these parts whose call is ``call(self, x)``."""
    import tensorflow as tf

    class Block(tf.keras.layers.Layer):
        """Parts under their names, and one function that calls them."""

        def __init__(self) -> None:
            super().__init__(name=name)
            for key, part in parts.items():
                setattr(self, key, part)

        def call(self, x: Any) -> Any:
            return call(self, x)

    return Block()


def channels_first(inner: Any) -> Any:
    """The module between two views: (batch, positions..., channels) in and out, channels first inside."""
    return module(lambda self, x: self.inner(x.movedim(-1, 1)).movedim(1, -1), inner=inner)


def unwrapped(found: Any) -> Any:
    """The module that holds the weights, without what stands around it."""
    while hasattr(found, "inner"):
        found = found.inner
    return found
