"""Pooling and upsampling: maximum and average, plain, global and adaptive, and interpolation to the nearest or bilinear.

Each branch is one layer on a small input, (2, 9, 4), (2, 9, 7, 4) or (2, 4, 6, 4, 3), channels last.

How the frameworks differ here
* An average over windows that reach into the padding is taken over what lies inside in TensorFlow; in PyTorch only with
  count_include_pad=False.
* Keras builds an adaptive pool of averages out of windows of two sizes, gathered where they belong, and of maxima
  likewise; PyTorch has one operator.  Keras writes a global pool as a mean, PyTorch as an adaptive pool to 1.
* Keras repeats rows and columns to upsample to the nearest; bilinear interpolation is one operator in either framework, of
  other elementary operations.  On JAX it is two products with matrices of weights, one per axis.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, module
from reconcile.model_zoo.bricks.net import branches, pair

ONE: Shape = (9, 4)
TWO: Shape = (9, 7, 4)
THREE: Shape = (4, 6, 4, 3)

KERAS = {"max": "MaxPooling", "avg": "AveragePooling"}
TORCH = {"max": "MaxPool", "avg": "AvgPool"}


def pool(name: str, kind: str, shape: Shape, window: int, stride: int, same: bool = False) -> Brick:
    """A pool of square windows, "same" only where the padding is even."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        make = getattr(keras.layers, f"{KERAS[kind]}{axes}D")
        return make(window, strides=stride, padding="same" if same else "valid", name=name)

    def overhang(size: int) -> int:
        return max((-(-size // stride) - 1) * stride + window - size, 0) if same else 0

    def torch(shape: Shape) -> Any:
        import torch

        padding = tuple(overhang(size) // 2 for size in shape[:-1])
        options = {"count_include_pad": False} if kind == "avg" else {}
        return getattr(torch.nn, f"{TORCH[kind]}{axes}d")(window, stride, padding, **options)

    return Brick(
        name,
        shape,
        tf,
        torch,
        out=lambda shape: (*((n + overhang(n) - window) // stride + 1 for n in shape[:-1]), shape[-1]),
        fits=lambda shape: all(n >= window and overhang(n) % 2 == 0 for n in shape[:-1]),
        channels_first=True,
    )


def whole(name: str, kind: str, shape: Shape) -> Brick:
    """A global pool: one value per channel."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        return getattr(keras.layers, f"Global{KERAS[kind]}{axes}D")(name=name)

    def torch(_shape: Shape) -> Any:
        import torch

        inner = getattr(torch.nn, f"Adaptive{TORCH[kind]}{axes}d")(1)
        return module(lambda self, x: self.pool(x.movedim(-1, 1)).flatten(1), pool=inner)

    return Brick(name, shape, tf, torch, out=lambda shape: shape[-1:])


def adaptive(name: str, kind: str, shape: Shape, size: Shape) -> Brick:
    """An adaptive pool to that many positions."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        return getattr(keras.layers, f"Adaptive{KERAS[kind]}{axes}D")(size, name=name)

    def torch(_shape: Shape) -> Any:
        import torch

        return getattr(torch.nn, f"Adaptive{TORCH[kind]}{axes}d")(size)

    return Brick(
        name,
        shape,
        tf,
        torch,
        out=lambda shape: (*size, shape[-1]),
        fits=lambda shape: all(n >= wanted for n, wanted in zip(shape[:-1], size, strict=True)),
        channels_first=True,
    )


def upsampling(name: str, shape: Shape, factor: int, mode: str = "nearest") -> Brick:
    """Make every axis of positions ``factor`` times as long."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        options = {"interpolation": mode} if axes == 2 else {}
        return getattr(keras.layers, f"UpSampling{axes}D")(factor, name=name, **options)

    def torch(_shape: Shape) -> Any:
        import torch

        return torch.nn.Upsample(scale_factor=factor, mode=mode)

    return Brick(
        name,
        shape,
        tf,
        torch,
        out=lambda shape: (*(n * factor for n in shape[:-1]), shape[-1]),
        channels_first=True,
    )


BRICKS = (
    pool("max1d", "max", ONE, 3, 2),
    pool("max2d", "max", TWO, 2, 2),
    pool("max2d_overlapping", "max", TWO, 3, 2),
    pool("max2d_same", "max", TWO, 3, 2, same=True),
    pool("max3d", "max", THREE, 2, 2),
    pool("avg1d", "avg", ONE, 3, 3),
    pool("avg2d", "avg", TWO, 3, 2),
    pool("avg2d_same", "avg", TWO, 3, 2, same=True),
    pool("avg3d", "avg", THREE, 2, 2),
    whole("global_max1d", "max", ONE),
    whole("global_avg1d", "avg", ONE),
    whole("global_max2d", "max", TWO),
    whole("global_avg2d", "avg", TWO),
    whole("global_avg3d", "avg", THREE),
    adaptive("adaptive_avg1d", "avg", ONE, (4,)),
    adaptive("adaptive_avg2d", "avg", TWO, (3, 2)),
    adaptive("adaptive_max2d", "max", TWO, (4, 3)),
    upsampling("nearest1d", ONE, 2),
    upsampling("nearest2d", TWO, 2),
    upsampling("nearest3d", THREE, 2),
    upsampling("bilinear2d", TWO, 2, "bilinear"),
)

PAIR, inputs, build_keras, build_torch, copy_weights = pair(
    "family_pooling",
    branches(BRICKS),
    notes=("Every layer is a branch of its own and all outputs are returned; two samples.",),
)
