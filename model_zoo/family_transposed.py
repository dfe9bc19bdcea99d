"""Transposed convolutions: one to three axes, strides, and the padding in which the frameworks agree and do not.

Each branch is one layer on a small input, (2, 5, 4), (2, 5, 4, 4) or (2, 3, 4, 3, 4), channels last.

How the frameworks differ here
* The multiply-adds go by the input: each of its elements is multiplied with the whole kernel.
* Keras' "same" gives size x stride outputs and cuts the odd one of the overhang off at the end; PyTorch's padding cuts
  both ends alike.  Where the overhang is odd, PyTorch computes all of it, bias and all, and a slice is taken.
* Where the stride exceeds the kernel, Keras' "valid" ends with the rows that no input reaches; PyTorch calls them
  output_padding.
* Keras has no groups for transposed convolutions, so there are none here.
* JAX runs one of stride 1 as a plain convolution of a padded input: its work goes by the output, which is larger.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, module, weights
from reconcile.model_zoo.bricks.net import branches, pair

ONE: Shape = (5, 4)
TWO: Shape = (5, 4, 4)
THREE: Shape = (3, 4, 3, 4)


def sizes(shape: Shape, kernel: int, stride: int, padding: str) -> Shape:
    """Positions of the output: of "valid", every position a kernel reaches, and the rest of the last stride."""
    beyond = 0 if padding == "same" else max(kernel - stride, 0)
    return tuple(size * stride + beyond for size in shape[:-1])


def cropped(inner: Any, size: Shape) -> Any:
    """A module, and of its output the first positions."""

    first = (slice(None), slice(None), *(slice(n) for n in size))
    return module(lambda self, x: self.inner(x)[first], inner=inner)


def transposed(
    name: str, shape: Shape, filters: int, kernel: int, stride: int = 1, padding: str = "valid", bias: bool = True
) -> Brick:
    """A transposed convolution on as many axes as the shape has positions."""
    axes = len(shape) - 1

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        make = getattr(keras.layers, f"Conv{axes}DTranspose")
        return make(filters, kernel, strides=stride, padding=padding, use_bias=bias, name=name)

    def torch(shape: Shape) -> Any:
        import torch

        make = getattr(torch.nn, f"ConvTranspose{axes}d")
        options = {"stride": stride, "bias": bias}
        overhang = kernel - stride
        if padding == "same" and overhang % 2:
            return cropped(
                make(shape[-1], filters, kernel, padding=overhang // 2, **options),
                sizes(shape, kernel, stride, padding),
            )
        if padding == "same":
            return make(shape[-1], filters, kernel, padding=overhang // 2, **options)
        return make(shape[-1], filters, kernel, output_padding=max(-overhang, 0), **options)

    return Brick(
        name,
        shape,
        tf,
        torch,
        weights.product,
        out=lambda shape: (*sizes(shape, kernel, stride, padding), filters),
        channels_first=True,
    )


BRICKS = (
    transposed("transposed1d", ONE, 6, 3),
    transposed("transposed1d_stride", ONE, 5, 3, stride=2),
    transposed("transposed2d", TWO, 3, 3),
    transposed("transposed2d_stride", TWO, 3, 3, stride=2),
    transposed("transposed2d_gaps", TWO, 3, 2, stride=3),
    transposed("transposed2d_same_even", TWO, 3, 4, stride=2, padding="same"),
    transposed("transposed2d_same_odd", TWO, 3, 3, stride=2, padding="same"),
    transposed("transposed2d_no_bias", TWO, 3, 2, stride=2, bias=False),
    transposed("transposed3d", THREE, 3, 2),
    transposed("transposed3d_stride", THREE, 3, 3, stride=2),
)

PAIR, inputs, build_keras, build_torch, copy_weights = pair(
    "family_transposed",
    branches(BRICKS),
    notes=("Every layer is a branch of its own and all outputs are returned; two samples.",),
)
