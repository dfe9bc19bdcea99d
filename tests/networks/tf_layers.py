"""Keras layers and TensorFlow's own products as blocks.

Values are (batch, width), (batch, steps, width) or (batch, rows, columns, channels).
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, prod
from typing import Any

import tensorflow as tf

from .block import Block, Cost, Makes, Shape, free, product, weighed

L = tf.keras.layers
make = MAKES = Makes()


class Apply(L.Layer):
    """``function(layer, value)`` with the weights that are given and the layers within."""

    def __init__(self, function: Callable[[Any, Any], Any], *weights: Shape, parts: Any = ()) -> None:
        super().__init__()
        self.function, self.parts = function, list(parts)
        self.held = [
            self.add_weight(shape=shape, initializer="glorot_uniform", name=f"w{i}") for i, shape in enumerate(weights)
        ]

    def call(self, value: Any) -> Any:
        return self.function(self, value)


@make
def dense(rng: Any, shape: Shape) -> Block | None:
    out = rng.randint(1, 6)
    layer = L.Dense(out, activation=rng.choice([None, "relu", "tanh"]), use_bias=rng.random() < 0.6)
    wrap = len(shape) == 3 and rng.random() < 0.2
    return Block("time_distributed" if wrap else "dense", L.TimeDistributed(layer) if wrap else layer,
                 (*shape[:-1], out), weighed(prod(shape) * out), True)  # fmt: skip


@make
def convolution(rng: Any, shape: Shape) -> Block | None:
    if len(shape) == 2:
        return None
    (batch, *sizes, channels), axes = shape, len(shape) - 2
    kernel, same = rng.randint(1, 3), rng.random() < 0.5
    dilation = rng.choice([1, 1, 2])
    stride = rng.randint(1, 2) if dilation == 1 else 1
    out = rng.randint(1, 5)
    groups = gcd(channels, out) if dilation == 1 and rng.random() < 0.3 else 1
    reach = (kernel - 1) * dilation
    if min(sizes) <= reach:
        return None
    made = [-(-n // stride) if same else (n - reach - 1) // stride + 1 for n in sizes]
    run = made
    if dilation > 1:  # filled up to whole phases, each of which is a dense convolution
        run = [-(-(n + reach * same) // dilation) * dilation - reach for n in sizes]
    macs = batch * prod(run) * out * kernel**axes * (channels // groups)
    layer = (L.Conv1D, L.Conv2D)[axes - 1](
        out,
        kernel,
        stride,
        "same" if same else "valid",
        dilation_rate=dilation,
        groups=groups,
        use_bias=rng.random() < 0.5,
    )
    name = f"conv{axes}d_g{groups}{'_dilated' if dilation > 1 else ''}"
    # XLA compiles one in groups for the CPU: the gradients are a function that gives both
    form = weighed(macs) if groups == 1 else lambda n, t: product(macs, n or t, n or t)
    return Block(name, layer, (batch, *made, out), form, True, steps=groups == 1)


@make
def transposed(rng: Any, shape: Shape) -> Block | None:
    if len(shape) == 2:
        return None
    (batch, *sizes, _), axes = shape, len(shape) - 2
    kernel, stride, same, out = rng.randint(1, 3), rng.randint(1, 2), rng.random() < 0.5, rng.randint(1, 5)
    made = [n * stride if same else n * stride + max(kernel - stride, 0) for n in sizes]
    layer = (L.Conv1DTranspose, L.Conv2DTranspose)[axes - 1](out, kernel, stride, "same" if same else "valid")
    macs = prod(shape) * kernel**axes * out
    return Block(f"conv_transposed{axes}d", layer, (batch, *made, out), weighed(macs), True)


@make
def depthwise(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 4:
        return None
    batch, rows, columns, channels = shape
    kernel, several, out = rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 5)
    deep = batch * rows * columns * channels * several
    if rng.random() < 0.5:
        layer = L.DepthwiseConv2D(kernel, padding="same", depth_multiplier=several)
        made = (batch, rows, columns, channels * several)
        return Block("depthwise", layer, made, weighed(deep * kernel**2), True)
    layer = L.SeparableConv2D(out, kernel, padding="same", depth_multiplier=several)

    def form(needs: bool, trained: bool) -> Cost:
        return product(deep * kernel**2, needs, trained) + product(deep * out, needs or trained, trained)

    return Block("separable", layer, (batch, rows, columns, out), form, True)


@make
def recurrent(rng: Any, shape: Shape) -> Block | None:
    """In a loop of the graph: its body's gradient is the same at every step, also at the first."""
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    kind, gates = rng.choice([(L.SimpleRNN, 1), (L.GRU, 3), (L.LSTM, 4)])
    units, ways = rng.randint(1, 4), rng.randint(1, 2)
    layer = kind(units, return_sequences=True, use_bias=rng.random() < 0.7)
    once, again = (ways * steps * batch * gates * units * n for n in (width, units))

    def form(needs: bool, trained: bool) -> Cost:
        return product(once, needs, trained) + product(again, needs or trained, trained)

    name = f"{kind.__name__.lower()}{'_both' if ways == 2 else ''}"
    made = (batch, steps, units * ways)
    return Block(name, L.Bidirectional(layer) if ways == 2 else layer, made, form, True)


def attended(macs: int, needs: bool) -> Cost:
    """Scores and values, and the four products of their gradients."""
    return Cost(2 * macs, inputs=4 * macs * needs)


@make
def multi_head(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    heads, each, causal = rng.randint(1, 3), rng.randint(1, 4), rng.random() < 0.3
    inner, rows = heads * each, batch * steps
    grouped = heads > 1 and rng.random() < 0.4
    layer = L.GroupQueryAttention(each, heads, 1) if grouped else L.MultiHeadAttention(heads, each)

    def form(needs: bool, trained: bool) -> Cost:
        after = needs or trained
        total = product(rows * width * inner, needs, trained)
        total += product(rows * width * (each if grouped else inner), needs, trained) * 2
        return total + attended(rows * steps * inner, after) + product(rows * inner * width, after, trained)

    run = Apply(lambda m, x: m.parts[0](x, x, use_causal_mask=causal), parts=[layer])
    return Block("grouped_query" if grouped else "multi_head", run, shape, form, True)


@make
def attention(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    layer = L.Attention(use_scale=False)
    macs = batch * steps * steps * width
    return Block(
        "attention", Apply(lambda m, x: m.parts[0]([x, x]), parts=[layer]), shape, lambda n, t: attended(macs, n)
    )


@make
def norm(rng: Any, shape: Shape) -> Block | None:
    kind = rng.choice([L.LayerNormalization, L.BatchNormalization, L.Dropout, L.Softmax])
    layer = kind(0.2) if kind is L.Dropout else kind()
    return Block(kind.__name__.lower(), layer, shape, free, kind in (L.LayerNormalization, L.BatchNormalization))


@make
def pointwise(rng: Any, shape: Shape) -> Block | None:
    kind = rng.choice(["relu", "tanh", "gelu", "sigmoid"])
    return Block(kind, L.Activation(kind), shape, free)


@make
def folded(rng: Any, shape: Shape) -> Block | None:
    if len(shape) == 2:
        return Block("one_step", Apply(lambda m, x: x[:, None]), (shape[0], 1, shape[1]), free)
    if len(shape) == 4:
        after = (shape[0], shape[1] * shape[2], shape[3])
        return Block("places", Apply(lambda m, x: tf.reshape(x, after)), after, free)
    if rng.random() < 0.5:
        return Block("mean", Apply(lambda m, x: tf.reduce_mean(x, 1)), (shape[0], shape[2]), free)
    return Block("map", Apply(lambda m, x: x[..., None]), (*shape, 1), free)


EINSUMS = {2: "bi,ij->bj", 3: "bti,ij->btj", 4: "bxyi,ij->bxyj"}
"""They have no ellipsis: its gradient by the weight is an outer product, element by element, and a sum."""
WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "einsum": lambda m, x: tf.einsum(EINSUMS[len(x.shape)], x, m.held[0]),
    "tensordot": lambda m, x: tf.tensordot(x, m.held[0], 1),
    "matmul": lambda m, x: tf.reshape(
        tf.reshape(x, (-1, x.shape[-1])) @ m.held[0], (*x.shape[:-1], m.held[0].shape[1])
    ),
}


@make
def written(rng: Any, shape: Shape) -> Block | None:
    kind, out = rng.choice(sorted(WRITTEN)), rng.randint(1, 6)
    return Block(kind, Apply(WRITTEN[kind], (shape[-1], out)), (*shape[:-1], out), weighed(prod(shape) * out), True)


@make
def with_itself(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    einsum, macs = rng.random() < 0.5, batch * steps * steps * width
    run = (lambda m, x: tf.einsum("bti,bsi->bts", x, x)) if einsum else (lambda m, x: tf.matmul(x, x, transpose_b=True))
    return Block("self_product", Apply(run), (batch, steps, steps), lambda n, t: product(macs, 2 * n))
