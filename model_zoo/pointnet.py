"""PointNet for classification: every point through the same dense layers, two learned transforms, a maximum over points.

Points (1, 1024, 3) -> 3 x 3 transform -> 64 -> 64 -> 64 x 64 transform -> 64 -> 128 -> 1024 -> max -> 512 -> 256 ->
classes (1, 40).

How the frameworks differ here
* Dense layers per point are convolutions of kernel 1.  Keras' Conv1D runs as a Conv2D on an image one pixel high, with a
  bias apart; PyTorch's as one convolution, bias included, on channels first.
* The transforms, and so the matrices they multiply, are outputs of the network: the products are batched matrix products,
  which module hooks do not see.
* Each transform starts at the identity: the last dense layer's bias is that matrix, on both sides, as in Keras' example.
* Qi et al. use dropout before the classes; in inference it does nothing, and it is left out.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import weights
from reconcile.model_zoo.pair import Input, Layer, Pair, Published

EPSILON = 1e-3

POINTWISE, DENSE = (64, 128, 1024), (512, 256)
"""Widths per point before a maximum, and behind it."""

FIRST = (64, 64)
"""Widths per point between the transforms."""


def stacks() -> list[tuple[str, tuple[int, ...]]]:
    """Every stack of layers with batch norm and relu: its name and widths, in order."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for transform, following in (("t3", ("first", FIRST)), ("t64", ("second", POINTWISE))):
        found += [(transform + "_conv", POINTWISE), (transform + "_dense", DENSE), following]
    return [*found, ("head", DENSE)]


def layers() -> tuple[Layer, ...]:
    """One row per layer, its relu included."""
    names: list[str] = []
    for stack, widths in stacks():
        names += [f"{stack}_{index}{part}" for index in range(len(widths)) for part in ("", "_bn", "_relu")]
        if stack in ("t3_conv", "t64_conv", "second"):
            names.append(stack.removesuffix("_conv") + "_max")
        if stack.endswith("_dense"):
            names += [stack.removesuffix("_dense") + part for part in ("_matrix", "_apply")]
    return tuple(Layer(name, name, name) for name in [*names, "classes"])


PAIR = Pair(
    name="pointnet",
    params={"batch": 1, "points": 1024, "classes": 40, "scale": 1},
    layers=layers(),
    notes=(
        "Dense layers per point are convolutions of kernel 1; the learned transforms are batched matrix products.",
        "The network of Qi et al. 2017 (arXiv:1612.00593), untrained; scale divides the widths of all hidden layers.",
    ),
    published=(
        Published(
            "440M",
            "floating-point operations per sample",
            "Qi et al. 2017, table 6, arXiv:1612.00593",
        ),
    ),
)

TRAINING = {"batch": "2"}
"""A batch norm of vectors needs a second sample to have a variance."""

PROOF = {"batch": "2", "points": "7", "classes": "5", "scale": "8"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Points: (batch, points, 3)."""
    return [Input("points", (p.batch, p.points, 3))]


def build_tf(p: Any) -> Any:
    """The Keras model."""
    import numpy
    import tensorflow as tf

    keras = tf.keras.layers

    class Apply(tf.keras.layers.Layer):
        """Every point (batch, points, width) by the matrix (batch, width, width)."""

        def call(self, x: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
            return tf.matmul(x, matrix)

    def stack(x: Any, name: str, widths: tuple[int, ...], make: Any) -> Any:
        for index, width in enumerate(widths):
            here = f"{name}_{index}"
            x = keras.BatchNormalization(epsilon=EPSILON, name=here + "_bn")(make(width // p.scale, name=here)(x))
            x = keras.ReLU(name=here + "_relu")(x)
        return x

    def pointwise(width: int, name: str) -> Any:
        return keras.Conv1D(width, 1, name=name)

    def transform(x: Any, name: str) -> Any:
        width = x.shape[-1]
        y = keras.GlobalMaxPooling1D(name=name + "_max")(stack(x, name + "_conv", POINTWISE, pointwise))
        y = stack(y, name + "_dense", DENSE, keras.Dense)
        identity = tf.keras.initializers.Constant(numpy.eye(width, dtype="float32").flatten())
        y = keras.Dense(width * width, bias_initializer=identity, name=name + "_matrix")(y)
        y = keras.Reshape((width, width), name=name + "_square")(y)
        return Apply(name=name + "_apply")(x, y)

    start = keras.Input(batch_shape=(p.batch, p.points, 3), name="points")
    x = stack(transform(start, "t3"), "first", FIRST, pointwise)
    x = stack(transform(x, "t64"), "second", POINTWISE, pointwise)
    x = stack(keras.GlobalMaxPooling1D(name="second_max")(x), "head", DENSE, keras.Dense)
    return tf.keras.Model(start, keras.Dense(p.classes, name="classes")(x))


def build_torch(p: Any) -> Any:
    """The PyTorch module; it takes the points as Keras does, their coordinates last."""
    import torch
    from torch import nn

    class Maximum(nn.Module):
        """Over the points (batch, width, points), as a layer of its own so that it has a name."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.max(2).values

    class Apply(nn.Module):
        """Every point (batch, width, points) by the matrix (batch, width, width)."""

        def forward(self, x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
            return torch.bmm(x.transpose(1, 2), matrix).transpose(1, 2)

    class PointNet(nn.Module):
        """Same layers, same names; points last inside."""

        def __init__(self) -> None:
            super().__init__()
            before = 3
            last = POINTWISE[-1] // p.scale
            for name, widths in stacks():
                if name.endswith("_conv"):
                    start = before
                dense = name.endswith("_dense") or name == "head"
                before = self._stack(name, last if dense else before, widths, dense)
                if name.endswith("_dense"):
                    self._transform(name.removesuffix("_dense"), before, start)
                    before = start
            self.second_max = Maximum()
            self.classes = nn.Linear(DENSE[-1] // p.scale, p.classes)

        def _stack(self, name: str, before: int, widths: tuple[int, ...], dense: bool) -> int:
            for index, width in enumerate(width // p.scale for width in widths):
                here = f"{name}_{index}"
                self.add_module(here, nn.Linear(before, width) if dense else nn.Conv1d(before, width, 1))
                self.add_module(here + "_bn", nn.BatchNorm1d(width, eps=EPSILON))
                self.add_module(here + "_relu", nn.ReLU())
                before = width
            return before

        def _transform(self, name: str, before: int, width: int) -> None:
            self.add_module(name + "_max", Maximum())
            matrix = nn.Linear(before, width * width)
            matrix.bias.data.copy_(torch.eye(width).flatten())
            self.add_module(name + "_matrix", matrix)
            self.add_module(name + "_apply", Apply())

        def _run(self, x: torch.Tensor, name: str, count: int) -> torch.Tensor:
            for index in range(count):
                for part in ("", "_bn", "_relu"):
                    x = getattr(self, f"{name}_{index}{part}")(x)
            return x

        def _turned(self, x: torch.Tensor, name: str) -> torch.Tensor:
            y = getattr(self, name + "_max")(self._run(x, name + "_conv", len(POINTWISE)))
            y = getattr(self, name + "_matrix")(self._run(y, name + "_dense", len(DENSE)))
            return getattr(self, name + "_apply")(x, y.view(p.batch, x.shape[1], x.shape[1]))

        def forward(self, points: torch.Tensor) -> torch.Tensor:
            x = self._turned(points.transpose(1, 2), "t3")
            x = self._turned(self._run(x, "first", len(FIRST)), "t64")
            x = self.second_max(self._run(x, "second", len(POINTWISE)))
            return self.classes(self._run(x, "head", len(DENSE)))

    return PointNet()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    weights.by_name(tf_model.layers, torch_model)
