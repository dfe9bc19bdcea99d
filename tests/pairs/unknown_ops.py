"""Ops without a formula: eigenvalues, Fourier transform, a torch.library op whose kernel is numpy, a rare TF op."""

from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair(
    name="unknown_ops",
    params={"n": 4, "which": "eigenvalues"},
    layers=(Layer("linear", tf="linear", torch="linear"), Layer("odd", tf="odd", torch="odd")),
)


def inputs(p):
    return [Input("x", (p.n, p.n))]


def build_tf(p):
    import tensorflow as tf

    class Odd(tf.keras.layers.Layer):
        def call(self, x):
            if p.which == "eigenvalues":
                return tf.linalg.eigvalsh(x)
            if p.which == "fft":
                return tf.cast(tf.math.real(tf.signal.rfft(x)), tf.float32)
            return tf.raw_ops.Betainc(a=x * x, b=x * x, x=tf.sigmoid(x))

    start = tf.keras.layers.Input(batch_shape=(p.n, p.n))
    return tf.keras.Model(start, Odd(name="odd")(tf.keras.layers.Dense(p.n, name="linear")(start)))


_LIBRARY = []


def build_torch(p):
    import torch

    if not _LIBRARY:
        library = torch.library.Library("reconcile_test", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: torch.from_numpy(x.numpy() + x.numpy()), "CPU")
        _LIBRARY.append(library)

    class Odd(torch.nn.Module):
        def forward(self, x):
            if p.which == "eigenvalues":
                return torch.linalg.eigvalsh(x)
            if p.which == "fft":
                return torch.fft.rfft(x).abs()
            return torch.ops.reconcile_test.twice(x)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(p.n, p.n)
            self.odd = Odd()

        def forward(self, x):
            return self.odd(self.linear(x))

    return Model()
