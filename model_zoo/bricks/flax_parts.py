"""Parts of the JAX sides in Flax, and its names for the weights of Keras' layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flax import nnx

NAMES = {"gamma": "scale", "beta": "bias", "embeddings": "embedding", "attention_output": "out"}
"""What Keras calls a weight or a part of a layer, and what Flax calls it."""


class Sum(nnx.Module):
    """A sum, as a module of its own so that it has a name."""

    def __call__(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = first + other
        return first


class Function(nnx.Module):
    """A function of one array, as a module of its own so that it has a name."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, x: Any) -> Any:
        return self.function(x)


class Table(nnx.Module):
    """A learned vector per position, of which it gives the first ones."""

    def __init__(self, positions: int, width: int, rngs: Any) -> None:
        self.table = nnx.Param(nnx.initializers.uniform()(rngs.params(), (positions, width)))

    def __call__(self, steps: int) -> Any:
        return self.table[:steps]


class Tied(nnx.Module):
    """The head of a language model: logits by the table of the embedding."""

    def __call__(self, x: Any, embedding: Any) -> Any:
        return x @ embedding.T


def arrays(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of a Keras model by the paths of a Flax model whose modules have the names of its layers.

    >>> arrays({"block_0_norm/gamma": 1})
    {'block_0_norm.scale': 1}
    """
    return {".".join(NAMES.get(name, name) for name in path.split("/")): array for path, array in weights.items()}
