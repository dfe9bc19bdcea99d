"""Dense layers and embeddings: on vectors and on sequences, with and without bias, and Keras' einsum form of one.

Each branch is one layer on a small input, (2, 7), (2, 5, 6), (2, 3, 4, 5) or token ids (2, 5).

How the frameworks differ here
* Keras' Dense on more than one axis reshapes to a matrix, multiplies, and adds the bias to what it reshaped back;
  nn.Linear of PyTorch takes any number of axes.
* EinsumDense is a plain product in disguise: where its equation allows, Keras turns it into one.
* An embedding looks rows up and does no arithmetic in either framework.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, module, weights
from reconcile.model_zoo.bricks.net import branches, pair


def dense(name: str, shape: Shape, units: int, bias: bool = True) -> Brick:
    """A dense layer on the last axis."""

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        return keras.layers.Dense(units, use_bias=bias, name=name)

    def torch(shape: Shape) -> Any:
        import torch

        return torch.nn.Linear(shape[-1], units, bias=bias)

    return Brick(name, shape, tf, torch, weights.product, out=lambda shape: (*shape[:-1], units))


def einsum_dense(name: str, shape: Shape, heads: int, width: int) -> Brick:
    """(steps, channels) -> (steps, heads, width) by one einsum, and a bias per head."""

    def tf(name: str, shape: Shape) -> Any:
        import keras

        return keras.layers.EinsumDense("btc,chw->bthw", (shape[0], heads, width), bias_axes="hw", name=name)

    def torch(shape: Shape) -> Any:
        import torch

        return module(
            lambda self, x: torch.einsum("btc,chw->bthw", x, self.kernel) + self.bias,
            kernel=torch.nn.Parameter(torch.randn(shape[-1], heads, width)),
            bias=torch.nn.Parameter(torch.randn(heads, width)),
        )

    def copy(layer: Any, found: Any) -> None:
        kernel, bias = layer.get_weights()
        weights.put(found.kernel, kernel)
        weights.put(found.bias, bias)

    return Brick(name, shape, tf, torch, copy, out=lambda shape: (shape[0], heads, width))


def embedding(name: str, shape: Shape, vocabulary: int, width: int) -> Brick:
    """Token ids (steps,) -> (steps, width)."""

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        return keras.layers.Embedding(vocabulary, width, name=name)

    def torch(_shape: Shape) -> Any:
        import torch

        return torch.nn.Embedding(vocabulary, width)

    def copy(layer: Any, found: Any) -> None:
        weights.put(found.weight, layer.get_weights()[0])

    return Brick(name, shape, tf, torch, copy, out=lambda shape: (*shape, width), dtype="int64")


BRICKS = (
    dense("dense", (7,), 5),
    dense("dense_no_bias", (7,), 5, bias=False),
    dense("dense_one_unit", (7,), 1),
    dense("dense_steps", (5, 6), 4),
    dense("dense_steps_no_bias", (5, 6), 4, bias=False),
    dense("dense_map", (3, 4, 5), 6),
    einsum_dense("einsum_dense", (5, 6), 3, 2),
    embedding("embedding", (5,), 4, 3),
)

PAIR, inputs, build_keras, build_torch, copy_weights = pair(
    "family_dense",
    branches(BRICKS),
    notes=("Every layer is a branch of its own and all outputs are returned; two samples.",),
)
