"""Ways of using TensorFlow's blocks: sharing, residuals, frozen weights, gradients in a forward pass, loops, branches, vectorised
maps, and what is computed again."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import tensorflow as tf

from . import tf_layers as layers
from .block import Block, Cost, Makes, Shape, along, around, chain, free, product, repeated, residual, weighed
from .tf_layers import Apply, L

make = MAKES = Makes()
PLAIN = layers.MAKES
SURE = [layers.dense, layers.written, layers.convolution, layers.with_itself, layers.attention, layers.pointwise]


def after(m: Any, x: Any) -> Any:
    for part in m.parts:
        x = part(x)
    return x


def within(blocks: list[Block]) -> Any:
    return Apply(after, parts=[b.part for b in blocks])


@make
def added(rng: Any, shape: Shape) -> Block | None:
    return residual(rng, PLAIN, shape, lambda blocks: Apply(lambda m, x: x + m.parts[0](x), parts=[within(blocks)]))


@make
def shared(rng: Any, shape: Shape) -> Block | None:
    part = Apply(lambda m, x: m.parts[0](tf.tanh(m.parts[0](x))), parts=[L.Dense(shape[-1])])
    return Block("shared", part, shape, repeated(prod(shape) * shape[-1]), True)


@make
def frozen(rng: Any, shape: Shape) -> Block | None:
    blocks = chain(rng, SURE, shape, 2)
    if not blocks:
        return None
    part = within(blocks)
    part.trainable = False
    made = around("frozen", part, blocks, trained=False)
    return replace(made, form=lambda n, _: along(blocks, n, False)[0])


@make
def stopped(rng: Any, shape: Shape) -> Block | None:
    return Block("stop_gradient", Apply(lambda m, x: tf.stop_gradient(x)), shape, free, passes=False)


@make
def gradient(rng: Any, shape: Shape) -> Block | None:
    """The gradient of a part by its input, within the forward pass."""
    blocks = chain(rng, SURE, shape, 2)
    if not blocks:
        return None

    def run(m: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = tf.reduce_sum(tf.square(m.parts[0](x)))
        return tape.gradient(found, x)

    inner = along(blocks, True, False)[0]
    return around("gradient", Apply(run, parts=[within(blocks)]), blocks, steps=False, passes=False, trained=False,
                  shape=shape, form=lambda n, t: Cost(inner.forward + inner.backward))  # fmt: skip


@make
def looped(rng: Any, shape: Shape) -> Block | None:
    """As often as is known, or as a value says, in a loop of the graph."""
    width, times, known = shape[-1], rng.randint(1, 3), rng.random() < 0.5

    def run(m: Any, x: Any) -> Any:
        last = times if known else tf.cast(tf.reduce_sum(tf.cast(tf.equal(x, x), tf.int32)) * 0 + times, tf.int32)
        return tf.while_loop(
            lambda i, _: i < last, lambda i, v: (i + 1, tf.ensure_shape(m.parts[0](v), x.shape)), (0, x)
        )[1]

    macs = prod(shape) * width * times
    form = lambda n, t: product(macs, n or t, t)  # noqa: E731
    return Block(f"loop_{times}{'' if known else '_by_value'}", Apply(run, parts=[L.Dense(width)]), shape, form, True)


@make
def nested(rng: Any, shape: Shape) -> Block | None:
    """A loop whose turns have a loop of their own, as often as the turn says, or a branch, in every other turn. How many turns
    there are is known, or a value says it."""
    width, turns, first, known = shape[-1], rng.randint(1, 3), rng.randint(0, 2), rng.random() < 0.5
    branches = rng.random() < 0.4

    def run(m: Any, x: Any) -> Any:
        none = 0 if known else tf.reduce_sum(tf.cast(tf.equal(x, x), tf.int32)) * 0

        def once(v: Any) -> Any:
            return tf.ensure_shape(m.parts[0](v), x.shape)

        def turn(i: Any, v: Any) -> Any:
            if branches:
                return i + 1, tf.ensure_shape(tf.cond((i + first) % 2 == 0, lambda: once(v), lambda: v), x.shape)
            inner = tf.while_loop(lambda j, _: j < i + first, lambda j, u: (j + 1, once(u)), (none, v))[1]
            return i + 1, tf.ensure_shape(inner, x.shape)

        return tf.while_loop(lambda i, _: i < turns + none, turn, (0, x))[1]

    times = sum((i + first) % 2 == 0 if branches else i + first for i in range(turns))
    macs = prod(shape) * width * times
    form = lambda n, t: product(macs, n or t, t)  # noqa: E731
    return Block(f"nested_{times}{'_cond' if branches else ''}", Apply(run, parts=[L.Dense(width)]), shape, form, True)


@make
def mapped(rng: Any, shape: Shape) -> Block | None:
    """Row by row: in a loop, or all at once."""
    if len(shape) != 3:
        return None
    out, loop = rng.randint(1, 5), rng.random() < 0.5
    over = tf.map_fn if loop else tf.vectorized_map
    part = Apply(lambda m, x: over(lambda row: row @ m.held[0], x), (shape[-1], out))
    return Block(over.__name__, part, (*shape[:-1], out), weighed(prod(shape) * out), True)


@make
def branch(rng: Any, shape: Shape) -> Block | None:
    """One of two parts, by a value."""
    width, taken = shape[-1], rng.random() < 0.5
    limit = -1.0 if taken else float("inf")
    part = Apply(
        lambda m, x: tf.cond(
            tf.reduce_sum(tf.square(x)) > limit, lambda: m.parts[0](x), lambda: m.parts[1](x[..., :1])
        ),
        parts=[L.Dense(3), L.Dense(3)],
    )
    macs = prod(shape) // width * 3 * (width if taken else 1)
    return Block("cond", part, (*shape[:-1], 3), weighed(macs), True)


@make
def again(rng: Any, shape: Shape) -> Block | None:
    """recompute_grad: all of it is computed again for the gradients."""
    width = shape[-1]
    macs = prod(shape) * width

    def run(m: Any, x: Any) -> Any:
        flat = tf.recompute_grad(lambda v: tf.tanh(v @ m.held[0]))(tf.reshape(x, (-1, width)))
        return tf.reshape(flat, shape)

    def form(needs: bool, trained: bool) -> Cost:
        return product(macs, needs, trained) + Cost(again=macs * (needs or trained))

    return Block("recompute_grad", Apply(run, (width, width)), shape, form, True)


ALL = [*PLAIN, *PLAIN, *MAKES]
"""Plain blocks more often than not."""
