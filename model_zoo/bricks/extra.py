"""Bricks that no family has: `reconcile counter reproduce` shows bugs with them, and no committed report contains them."""

from __future__ import annotations

from typing import Any

from . import Brick, Shape, layer, module

SHAPE: Shape = (5, 6)


def products_of_columns(name: str) -> Brick:
    """x^T x, sample by sample: the product of a matrix whose first operand is transposed."""

    def tf(name: str, _shape: Shape) -> Any:
        import tensorflow as tf

        return layer(name, lambda _self, x: tf.matmul(x, x, transpose_a=True))

    def torch(_shape: Shape) -> Any:
        return module(lambda _self, x: x.transpose(1, 2) @ x)

    return Brick(name, SHAPE, tf, torch, out=lambda shape: (shape[-1], shape[-1]))


def two_parents(name: str) -> Brick:
    """One dense layer under two parents, and nowhere else: each parent calls it once."""

    def tf(name: str, shape: Shape) -> Any:
        import tensorflow as tf

        dense = tf.keras.layers.Dense(shape[-1])
        parts = {side: tf.keras.Sequential([dense], name=side) for side in ("left", "right")}
        return layer(name, lambda self, x: self.right(self.left(x)), **parts)

    def torch(shape: Shape) -> Any:
        import torch

        dense = torch.nn.Linear(shape[-1], shape[-1])
        parts = {side: torch.nn.Sequential(dense) for side in ("left", "right")}
        return module(lambda self, x: self.right(self.left(x)), **parts)

    return Brick(name, SHAPE, tf, torch)


def attention_of_heads(name: str) -> Brick:
    """The fused attention of (heads, steps, width) to itself: PyTorch has kernels of its own for four axes with the batch."""

    def tf(name: str, _shape: Shape) -> Any:
        import tensorflow as tf

        return layer(name, lambda _self, x: tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True)), x))

    def torch(_shape: Shape) -> Any:
        import torch

        attention = torch.nn.functional.scaled_dot_product_attention
        return module(lambda _self, x: attention(x, x, x, scale=1.0))

    return Brick(name, (2, 5, 8), tf, torch)


def image_classifier(name: str) -> Brick:
    """A convolution over an image, and a dense layer on the largest value of each channel: it does not grow with the image."""

    def tf(name: str, _shape: Shape) -> Any:
        import tensorflow as tf

        layers = tf.keras.layers
        parts = (layers.Conv2D(4, 32, strides=32), layers.GlobalMaxPooling2D(), layers.Dense(5))
        return tf.keras.Sequential(parts, name=name)

    def torch(shape: Shape) -> Any:
        import torch

        convolution = torch.nn.Conv2d(shape[-1], 4, 32, stride=32)
        return torch.nn.Sequential(
            convolution, torch.nn.AdaptiveMaxPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 5)
        )

    return Brick(name, (64, 96, 3), tf, torch, channels_first=True, out=lambda _shape: (5,))


BRICKS = (
    attention_of_heads("attention_of_heads"),
    two_parents("two_parents"),
    products_of_columns("first_transposed"),
    image_classifier("image_classifier"),
)
