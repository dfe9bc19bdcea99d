"""A recommender in the style of DLRM: a table per category, a bottom MLP, all dot products between them, a top MLP.

Dense features (1, 13) -> 512 -> 256 -> 64 -> 16; 26 categories (1, 26) -> 26 vectors of 16; the 27 vectors' 351 dot
products, joined to the first of them -> 367 -> 512 -> 256 -> 1 (1, 1).

How the frameworks differ here
* Looking a row up is no arithmetic; most of the model's weights lie in the tables and cost nothing.
* Both frameworks multiply the whole 27 x 27 square of dot products and keep the 351 below the diagonal: the work that runs
  is twice what the interaction needs.
* Naumov et al. sum several rows per category with EmbeddingBag; here each category has one value, as in the Criteo data,
  and each side has its ordinary embedding.
* Tables of the Criteo data have up to millions of rows; here each has ``rows``, which changes no count.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.pair import Input, Layer, Pair

DENSE, CATEGORIES = 13, 26
"""Features of the Criteo data."""

BOTTOM, TOP = (512, 256, 64), (512, 256)
"""Widths of the hidden layers; the bottom ends in the tables' width, the top in one."""


def layers() -> tuple[Layer, ...]:
    """One row per dense layer, its activation included, one for all tables, one for the interaction."""
    tables = tuple(f"table_{index}" for index in range(CATEGORIES))
    found = [Layer(f"bottom_{i}", f"bottom_{i}", (f"bottom_{i}", f"bottom_{i}_relu")) for i in range(len(BOTTOM) + 1)]
    found += [Layer("tables", tables, tables), Layer("interaction", "interaction", "interaction")]
    found += [Layer(f"top_{i}", f"top_{i}", (f"top_{i}", f"top_{i}_relu")) for i in range(len(TOP))]
    last = f"top_{len(TOP)}"
    return (*found, Layer(last, last, (last, "sigmoid")))


PAIR = Pair(
    name="dlrm",
    params={"batch": 1, "rows": 1000, "width": 16, "scale": 1},
    layers=layers(),
    notes=(
        "Both sides form all 27 x 27 dot products and keep 351 of them.",
        "The network of Naumov et al. 2019 (arXiv:1906.00091) with the widths of its Criteo Kaggle benchmark, untrained; "
        "one value per category, tables of equal size.",
        "scale divides the widths of the hidden layers.",
    ),
)

PROOF = {"batch": "3", "rows": "2", "width": "8", "scale": "8"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Dense features (batch, 13) and one value per category (batch, 26)."""
    return [Input("dense", (p.batch, DENSE)), Input("categories", (p.batch, CATEGORIES), "int64")]


def below_diagonal(count: int) -> tuple[list[int], list[int]]:
    """Rows and columns of the square's places below its diagonal."""
    places = [(row, column) for row in range(count) for column in range(row)]
    return [row for row, _ in places], [column for _, column in places]


def build_tf(p: Any) -> Any:
    """The Keras model."""
    import tensorflow as tf

    keras = tf.keras.layers
    rows, columns = below_diagonal(CATEGORIES + 1)
    places = [row * (CATEGORIES + 1) + column for row, column in zip(rows, columns, strict=True)]

    class Interaction(tf.keras.layers.Layer):
        """Dot products of all pairs of vectors (batch, width), joined to the first vector."""

        def call(self, vectors: list[tf.Tensor]) -> tf.Tensor:
            stacked = tf.stack(vectors, axis=1)
            products = tf.matmul(stacked, stacked, transpose_b=True)
            flat = tf.reshape(products, (p.batch, len(vectors) ** 2))
            return tf.concat([vectors[0], tf.gather(flat, places, axis=1)], axis=1)

    dense = keras.Input(batch_shape=(p.batch, DENSE), name="dense")
    categories = keras.Input(batch_shape=(p.batch, CATEGORIES), dtype="int64", name="categories")
    x = dense
    for index, width in enumerate(BOTTOM):
        x = keras.Dense(width // p.scale, activation="relu", name=f"bottom_{index}")(x)
    x = keras.Dense(p.width, activation="relu", name=f"bottom_{len(BOTTOM)}")(x)
    looked_up = [keras.Embedding(p.rows, p.width, name=f"table_{i}")(categories[:, i]) for i in range(CATEGORIES)]
    x = Interaction(name="interaction")([x, *looked_up])
    for index, width in enumerate(TOP):
        x = keras.Dense(width // p.scale, activation="relu", name=f"top_{index}")(x)
    x = keras.Dense(1, activation="sigmoid", name=f"top_{len(TOP)}")(x)
    return tf.keras.Model([dense, categories], x)


def build_torch(p: Any) -> Any:
    """The PyTorch module."""
    import torch
    from torch import nn

    class Interaction(nn.Module):
        """Dot products of all pairs of vectors (batch, width), joined to the first vector."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("places", torch.tensor(below_diagonal(CATEGORIES + 1)), persistent=False)

        def forward(self, vectors: list[torch.Tensor]) -> torch.Tensor:
            stacked = torch.stack(vectors, dim=1)
            products = torch.bmm(stacked, stacked.transpose(1, 2))
            return torch.cat([vectors[0], products[:, self.places[0], self.places[1]]], dim=1)

    class Recommender(nn.Module):
        """Same layers, same names."""

        def __init__(self) -> None:
            super().__init__()
            before = self._stack("bottom", DENSE, [*(width // p.scale for width in BOTTOM), p.width])
            for index in range(CATEGORIES):
                self.add_module(f"table_{index}", nn.Embedding(p.rows, p.width))
            self.interaction = Interaction()
            before += (CATEGORIES + 1) * CATEGORIES // 2
            before = self._stack("top", before, [width // p.scale for width in TOP])
            self.add_module(f"top_{len(TOP)}", nn.Linear(before, 1))
            self.sigmoid = nn.Sigmoid()

        def _stack(self, name: str, before: int, widths: list[int]) -> int:
            for index, width in enumerate(widths):
                self.add_module(f"{name}_{index}", nn.Linear(before, width))
                self.add_module(f"{name}_{index}_relu", nn.ReLU())
                before = width
            return before

        def _run(self, name: str, x: torch.Tensor, count: int) -> torch.Tensor:
            for index in range(count):
                x = getattr(self, f"{name}_{index}_relu")(getattr(self, f"{name}_{index}")(x))
            return x

        def forward(self, dense: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
            x = self._run("bottom", dense, len(BOTTOM) + 1)
            looked_up = [getattr(self, f"table_{index}")(categories[:, index]) for index in range(CATEGORIES)]
            x = self._run("top", self.interaction([x, *looked_up]), len(TOP))
            return self.sigmoid(getattr(self, f"top_{len(TOP)}")(x))

    return Recommender()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    import torch

    for layer in tf_model.layers:
        weights = [torch.as_tensor(array) for array in layer.get_weights()]
        if len(weights) == 1:
            getattr(torch_model, layer.name).weight.data.copy_(weights[0])
        elif weights:
            getattr(torch_model, layer.name).weight.data.copy_(weights[0].T)
            getattr(torch_model, layer.name).bias.data.copy_(weights[1])
