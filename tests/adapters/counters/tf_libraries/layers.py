"""A network of Keras, and of TensorFlow's own functions, whose products have closed forms: a worker imports them."""

from __future__ import annotations

from typing import Any


def network() -> Any:
    """Layers of each kind whose products oneDNN writes, on (2, 17, 16, 8)."""
    import keras

    layers = keras.layers
    x = given = keras.Input(batch_shape=(2, 17, 16, 8), name="given")
    x = layers.Conv2D(12, 3, activation="relu", name="conv")(x)  # 15 x 14
    x = layers.ZeroPadding2D(((1, 2), (2, 1)), name="pad")(x)  # 18 x 17
    x = layers.Conv2D(12, 4, strides=(2, 1), name="steps")(x)  # 8 x 14
    x = layers.Conv2D(12, 3, padding="same", groups=3, name="groups")(x)
    x = layers.DepthwiseConv2D(3, name="depthwise")(x)  # 6 x 12
    x = layers.Conv2D(10, 2, dilation_rate=2, padding="same", name="dilated")(x)
    x = layers.Conv2DTranspose(6, 3, strides=2, name="transposed")(x)  # 13 x 25
    x = layers.Reshape((13, 25 * 6), name="rows")(x)
    x = layers.Dense(20, name="map")(x)
    x = layers.MultiHeadAttention(2, 5, name="attention")(x, x)
    x = layers.LSTM(7, return_sequences=True, name="lstm")(x)
    x = layers.GRU(9, name="gru")(x)
    return keras.Model(given, layers.Dense(4, activation="softmax", name="head")(x))


MACS = {
    "conv": 2 * 15 * 14 * 12 * 9 * 8,
    "steps": 2 * 8 * 14 * 12 * 16 * 12,
    "groups": 2 * 8 * 14 * 12 * 9 * 12 // 3,
    "depthwise": 2 * 6 * 12 * 12 * 9,
    "dilated": 2 * 6 * 12 * 10 * 4 * 12,
    "transposed": 2 * 6 * 12 * 10 * 9 * 6,
    "map": 2 * 13 * 150 * 20,
    "attention": 4 * 2 * 13 * 20 * 10 + 2 * 2 * 2 * 13 * 13 * 5,
    "lstm": 2 * 13 * 4 * 7 * (20 + 7),
    "gru": 2 * 13 * 3 * 9 * (7 + 9),
    "head": 2 * 9 * 4,
}
"""Multiply-adds of each layer."""


class Twins:
    """One product taken twice, one in float64 and one that XLA compiles, on (6, 8)."""

    def __init__(self) -> None:
        import tensorflow as tf

        self.weight = tf.Variable(tf.ones((8, 5)))
        self.wide = tf.Variable(tf.ones((8, 3), tf.float64))
        self.compiled = tf.function(lambda x: tf.matmul(x, self.weight), jit_compile=True)

    def __call__(self, x: Any) -> Any:
        import tensorflow as tf

        twice = tf.matmul(x, x, transpose_b=True), tf.matmul(x, x, transpose_b=True) + 1.0
        return (*twice, tf.matmul(tf.cast(x, tf.float64), self.wide), self.compiled(x) * 2.0)


def twins() -> Any:
    """The model and its input."""
    import tensorflow as tf

    return Twins(), (tf.ones((6, 8)),)
