"""Convolutions: one to three axes, strides, dilation, groups, depthwise, separable, and "same" padding of both kinds.

Each branch is one layer on a small input, (2, 9, 4), (2, 9, 8, 4) or (2, 5, 6, 5, 4), channels last.

How the frameworks differ here
* PyTorch wants the channels first: its convolutions stand between two views.
* "same" with a stride pads unevenly where the sum of the padding is odd: one more at the end.  PyTorch's convolution takes
  no uneven padding; F.pad goes before it.
* TensorFlow takes a dilated convolution on the CPU apart into as many plain ones as the dilation has steps, each as long as
  the longest of them: where the dilation does not divide the padded input, it multiplies more, for the same outputs.
* "causal" is padding at the start alone; PyTorch writes that as F.pad, too.
* Keras runs grouped convolutions in a compiled function of their own on the CPU: tf.profiler does not look into it.
* PyTorch's depthwise convolution is one with as many groups as channels; a separable one is two modules.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, module, weights
from reconcile.model_zoo.bricks.net import branches, pair

ONE: Shape = (9, 4)
TWO: Shape = (9, 8, 4)
THREE: Shape = (5, 6, 5, 4)


def reach(kernel: int, dilation: int) -> int:
    """Positions from a kernel's first tap to its last."""
    return (kernel - 1) * dilation + 1


def same_padding(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """TensorFlow's "same": as many outputs as strides fit, the padding's odd one at the end."""
    total = max((-(-size // stride) - 1) * stride + reach(kernel, dilation) - size, 0)
    return total // 2, total - total // 2


def paddings(shape: Shape, padding: str, kernel: int, stride: int, dilation: int) -> list[tuple[int, int]]:
    """Padding before and after each axis of positions."""
    if padding == "valid":
        return [(0, 0)] * (len(shape) - 1)
    if padding == "causal":
        return [(reach(kernel, dilation) - 1, 0)]
    return [same_padding(size, kernel, stride, dilation) for size in shape[:-1]]


def padded(inner: Any, sides: list[tuple[int, int]]) -> Any:
    """A module after F.pad of (batch, channels, positions...): the last axis comes first there."""
    import torch

    flat = [n for side in reversed(sides) for n in side]
    return module(lambda self, x: self.inner(torch.nn.functional.pad(x, flat)), inner=inner)


def convolution(
    name: str,
    shape: Shape,
    filters: int,
    kernel: int,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    padding: str = "valid",
    bias: bool = True,
) -> Brick:
    """A dense or grouped convolution on as many axes as the shape has positions."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        make = getattr(keras.layers, f"Conv{axes}D")
        return make(
            filters,
            kernel,
            strides=stride,
            dilation_rate=dilation,
            groups=groups,
            padding=padding,
            use_bias=bias,
            name=name,
        )

    def torch(shape: Shape) -> Any:
        import torch

        make = partial(
            getattr(torch.nn, f"Conv{axes}d"),
            shape[-1],
            filters,
            kernel,
            stride=stride,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )
        if padding == "same" and stride == 1:
            return make(padding="same")
        sides = paddings(shape, padding, kernel, stride, dilation)
        if all(before == after for before, after in sides):
            return make(padding=tuple(before for before, _ in sides))
        return padded(make(), sides)

    return Brick(
        name,
        shape,
        tf,
        torch,
        weights.product,
        out=lambda shape: (*windows(shape, kernel, stride, dilation, padding), filters),
        fits=lambda shape: (
            shape[-1] % groups == 0 and (padding != "valid" or min(shape[:-1]) >= reach(kernel, dilation))
        ),
        channels_first=True,
    )


def windows(shape: Shape, kernel: int, stride: int, dilation: int, padding: str) -> Shape:
    """Positions of the output."""
    sides = paddings(shape, padding, kernel, stride, dilation)
    return tuple(
        (size + before + after - reach(kernel, dilation)) // stride + 1
        for size, (before, after) in zip(shape[:-1], sides, strict=True)
    )


def depthwise(name: str, shape: Shape, kernel: int, multiplier: int, stride: int = 1) -> Brick:
    """A depthwise convolution, not padded."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        make = getattr(keras.layers, f"DepthwiseConv{axes}D")
        return make(kernel, strides=stride, depth_multiplier=multiplier, name=name)

    def torch(shape: Shape) -> Any:
        import torch

        channels = shape[-1]
        return getattr(torch.nn, f"Conv{axes}d")(
            channels, channels * multiplier, kernel, stride=stride, groups=channels
        )

    return Brick(
        name,
        shape,
        tf,
        torch,
        weights.depthwise,
        out=lambda shape: (*windows(shape, kernel, stride, 1, "valid"), shape[-1] * multiplier),
        fits=lambda shape: min(shape[:-1]) >= kernel,
        channels_first=True,
    )


def separable(name: str, shape: Shape, filters: int, kernel: int) -> Brick:
    """A depthwise convolution and one of kernel 1, "same"."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        return getattr(keras.layers, f"SeparableConv{axes}D")(filters, kernel, padding="same", name=name)

    def torch(shape: Shape) -> Any:
        import torch

        make = getattr(torch.nn, f"Conv{axes}d")
        channels = shape[-1]
        return torch.nn.Sequential(
            make(channels, channels, kernel, padding="same", groups=channels, bias=False), make(channels, filters, 1)
        )

    return Brick(
        name, shape, tf, torch, weights.separable, out=lambda shape: (*shape[:-1], filters), channels_first=True
    )


BRICKS = (
    convolution("conv1d", ONE, 6, 3),
    convolution("conv1d_stride", ONE, 5, 3, stride=2),
    convolution("conv1d_dilated", ONE, 5, 3, dilation=2, padding="same"),
    convolution("conv1d_causal", ONE, 6, 3, padding="causal"),
    convolution("conv1d_groups", ONE, 6, 3, groups=2, padding="same"),
    convolution("conv2d", TWO, 6, 3),
    convolution("conv2d_no_bias", TWO, 6, 3, bias=False),
    convolution("conv2d_stride", TWO, 5, 3, stride=2),
    convolution("conv2d_dilated", TWO, 5, 3, dilation=2),
    convolution("conv2d_groups", TWO, 6, 3, groups=2),
    convolution("conv2d_same", TWO, 4, 3, padding="same"),
    convolution("conv2d_same_even_kernel", TWO, 4, 4, padding="same"),
    convolution("conv2d_same_stride", TWO, 4, 3, stride=2, padding="same"),  # 9 rows: even, 8 columns: uneven
    convolution("conv2d_pointwise", TWO, 7, 1),
    convolution("conv3d", THREE, 3, 2),
    convolution("conv3d_stride", THREE, 3, 3, stride=2, padding="same"),
    depthwise("depthwise1d", ONE, 3, 2),
    depthwise("depthwise2d", TWO, 3, 1),
    depthwise("depthwise2d_stride", TWO, 3, 2, stride=2),
    separable("separable1d", ONE, 6, 3),
    separable("separable2d", TWO, 6, 3),
)

PAIR, inputs, build_keras, build_torch, copy_weights = pair(
    "family_convolution",
    branches(BRICKS),
    notes=(
        "Every layer is a branch of its own and all outputs are returned; two samples.",
        "Dilated convolutions do more products in TensorFlow than in PyTorch where the dilation does not divide the input.",
        "Keras has no depthwise or separable convolution of three axes.",
    ),
)
