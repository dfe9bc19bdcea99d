"""Normalisations: batch, layer, group, instance, RMS and unit norm, with and without scale and shift.

Each branch is one layer on a small input, (2, 6), (2, 5, 6) or (2, 5, 4, 6), channels last.

How the frameworks differ here
* Keras writes most norms out as elementary operations, PyTorch has one fused operator each.
* PyTorch's epsilon is 1e-5, Keras' 1e-3 (1e-6 for RMS); both are given here.
* A layer norm over several axes has one row of weights per position in PyTorch, and in Keras too.
* Keras' group norm with one group per channel is PyTorch's instance norm.
* Keras' unit norm is F.normalize; the former adds a tiny epsilon, the latter divides by at least that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, module, weights
from reconcile.model_zoo.bricks.net import branches, pair

EPSILON = 1e-3


def norm(
    name: str,
    shape: Shape,
    tf: Callable[[Any], Callable[..., Any]],
    torch: Callable[[Any, Shape], Any],
    fits: Callable[[Shape], bool] = lambda _shape: True,
    channels_first: bool = False,
    **options: Any,
) -> Brick:
    """A norm: Keras' class and its options, and the PyTorch module for a shape."""

    def make_tf(name: str, _shape: Shape) -> Any:
        import keras

        return tf(keras.layers)(epsilon=EPSILON, name=name, **options)

    def make_torch(shape: Shape) -> Any:
        import torch as framework

        return torch(framework.nn, shape)

    return Brick(name, shape, make_tf, make_torch, weights.norm, fits=fits, channels_first=channels_first)


def batch(name: str, shape: Shape, affine: bool = True) -> Brick:
    """Batch norm with running statistics."""
    axes = max(len(shape) - 1, 1)
    return norm(
        name,
        shape,
        lambda layers: layers.BatchNormalization,
        lambda nn, shape: getattr(nn, f"BatchNorm{axes}d")(shape[-1], eps=EPSILON, affine=affine),
        channels_first=True,
        center=affine,
        scale=affine,
    )


def layer_norm(name: str, shape: Shape, axes: int = 1, affine: bool = True) -> Brick:
    """Layer norm over the last ``axes`` axes."""
    return norm(
        name,
        shape,
        lambda layers: layers.LayerNormalization,
        lambda nn, shape: nn.LayerNorm(shape[-axes:], eps=EPSILON, elementwise_affine=affine),
        axis=list(range(-axes, 0)),
        center=affine,
        scale=affine,
    )


def group(name: str, shape: Shape, groups: int, affine: bool = True) -> Brick:
    """Group norm."""
    return norm(
        name,
        shape,
        lambda layers: layers.GroupNormalization,
        lambda nn, shape: nn.GroupNorm(groups, shape[-1], eps=EPSILON, affine=affine),
        fits=lambda shape: shape[-1] % groups == 0,
        channels_first=True,
        groups=groups,
        center=affine,
        scale=affine,
    )


def instance(name: str, shape: Shape) -> Brick:
    """Instance norm, in Keras a group norm of one channel per group."""
    return norm(
        name,
        shape,
        lambda layers: layers.GroupNormalization,
        lambda nn, shape: getattr(nn, f"InstanceNorm{len(shape) - 1}d")(shape[-1], eps=EPSILON, affine=True),
        fits=lambda shape: len(shape) > 1 and min(shape[:-1]) > 1,
        channels_first=True,
        groups=-1,
    )


def rms(name: str, shape: Shape) -> Brick:
    """RMS norm over the last axis."""
    return norm(
        name,
        shape,
        lambda layers: layers.RMSNormalization,
        lambda nn, shape: nn.RMSNorm(shape[-1], eps=EPSILON),
    )


def unit(name: str, shape: Shape) -> Brick:
    """Each vector divided by its length."""

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        return keras.layers.UnitNormalization(name=name)

    def torch(_shape: Shape) -> Any:
        import torch

        return module(lambda _self, x: torch.nn.functional.normalize(x, dim=-1))

    return Brick(name, shape, tf, torch)


BRICKS = (
    batch("batch", (6,)),
    batch("batch1d", (5, 6)),
    batch("batch2d", (5, 4, 6)),
    batch("batch2d_plain", (5, 4, 6), affine=False),
    layer_norm("layer", (5, 6)),
    layer_norm("layer_plain", (5, 6), affine=False),
    layer_norm("layer_two_axes", (5, 6), axes=2),
    group("group", (5, 4, 6), 2),
    group("group_plain", (5, 4, 6), 3, affine=False),
    group("group_all", (5, 6), 1),
    instance("instance", (5, 4, 6)),
    rms("rms", (5, 6)),
    unit("unit", (5, 6)),
)

PAIR, inputs, build_keras, build_torch, copy_weights = pair(
    "family_norm",
    branches(BRICKS),
    notes=("Every layer is a branch of its own and all outputs are returned; two samples.",),
)

TRAINING = {"device": "meta"}
"""On the CPU, PyTorch 2.13 dies (SIGSEGV) in group norm's backward of a channels-last input that needs no gradient."""
