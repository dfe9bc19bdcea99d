"""Blocks of JAX: functions of their weights and a value of (batch, width) or (batch, steps, width), or (batch, rows, columns,
channels)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .block import Block, Cost, Makes, Shape, along, around, chain, free, product, repeated, residual, weighed

make = MAKES = Makes()


class Part:
    """``function(weights, value)``, with the shapes of its weights; ``held`` are those of the parts within."""

    def __init__(self, function: Callable[..., Any], *shapes: Shape, within: Sequence[Any] = ()) -> None:
        self.function, self.shapes, self.within = function, shapes, list(within)

    def weights(self) -> Any:
        """The weights, as a tree of arrays."""
        return [[jnp.ones(shape) for shape in self.shapes], [part.weights() for part in self.within]]

    def __call__(self, weights: Any, value: Any) -> Any:
        own, held = weights
        if not self.within:
            return self.function(own, value)
        calls = [lambda v, p=part, w=w: p(w, v) for part, w in zip(self.within, held, strict=True)]
        return self.function(own, value, *calls)


WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": lambda w, x: x @ w[0],
    "einsum": lambda w, x: jnp.einsum("...i,ij->...j", x, w[0]),
    "tensordot": lambda w, x: jnp.tensordot(x, w[0], 1),
    "dot_general": lambda w, x: lax.dot_general(x, w[0], (((x.ndim - 1,), (0,)), ((), ()))),
    "jit": lambda w, x: jax.jit(lambda a, b: jnp.tanh(a @ b))(x, w[0]),
    "vmap": lambda w, x: jax.vmap(lambda row: row @ w[0])(x),
}


@make
def written(rng: Any, shape: Shape) -> Block | None:
    kind, out = rng.choice(sorted(WRITTEN)), rng.randint(1, 6)
    return Block(kind, Part(WRITTEN[kind], (shape[-1], out)), (*shape[:-1], out), weighed(prod(shape) * out), True)


@make
def convolution(rng: Any, shape: Shape) -> Block | None:
    """With stride, dilation, padding and groups; every output element takes all taps, also those on padding."""
    if len(shape) != 4:
        return None
    batch, rows, columns, channels = shape
    kernel, dilation, stride = rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2)
    out, before = rng.randint(1, 5), rng.randint(0, 1)
    groups = gcd(channels, out) if rng.random() < 0.4 else 1
    reach = dilation * (kernel - 1) + 1
    made = [(n + 2 * before - reach) // stride + 1 for n in (rows, columns)]
    if min(made) < 1:
        return None

    def run(w: Any, x: Any) -> Any:
        return lax.conv_general_dilated(
            x, w[0], (stride, stride), [(before, before)] * 2, rhs_dilation=(dilation, dilation),
            dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups,
        )  # fmt: skip

    macs = batch * prod(made) * out * kernel**2 * (channels // groups)
    part = Part(run, (kernel, kernel, channels // groups, out))
    return Block(f"conv_g{groups}", part, (batch, *made, out), weighed(macs), True, steps=False)


@make
def with_itself(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    macs = batch * steps * steps * width
    run = rng.choice([lambda w, x: jnp.einsum("bti,bsi->bts", x, x), lambda w, x: jax.vmap(lambda row: row @ row.T)(x)])
    return Block("self_product", Part(run), (batch, steps, steps), lambda n, t: product(macs, 2 * n))


@make
def attention(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 3:
        return None
    (batch, steps, width), inner = shape, rng.randint(1, 4)
    rows, causal = batch * steps, rng.random() < 0.4

    def run(w: Any, x: Any) -> Any:
        query, key, value = ((x @ each)[:, :, None] for each in w)
        return jax.nn.dot_product_attention(query, key, value, is_causal=causal)[:, :, 0]

    def form(needs: bool, trained: bool) -> Cost:
        after = needs or trained
        inside = Cost(2 * rows * steps * inner, inputs=4 * rows * steps * inner * after)
        return product(rows * width * inner, needs, trained) * 3 + inside

    return Block("attention", Part(run, *[(width, inner)] * 3), (batch, steps, inner), form, True)


@make
def scanned(rng: Any, shape: Shape) -> Block | None:
    """A simple recurrent layer: its body's gradient is the same at every step, also at the first."""
    if len(shape) != 3:
        return None
    (batch, steps, width), units = shape, rng.randint(1, 4)
    unroll = rng.randint(1, 2)

    def run(w: Any, x: Any) -> Any:
        def step(state: Any, value: Any) -> Any:
            state = jnp.tanh(value @ w[0] + state @ w[1])
            return state, state

        return lax.scan(step, jnp.zeros((batch, units)), x.swapaxes(0, 1), unroll=unroll)[1].swapaxes(0, 1)

    def form(needs: bool, trained: bool) -> Cost:
        rows = batch * steps * units
        return product(rows * width, needs, trained) + product(rows * units, needs or trained, trained)

    return Block(f"scan{unroll}", Part(run, (width, units), (units, units)), (batch, steps, units), form, True)


@make
def looped(rng: Any, shape: Shape) -> Block | None:
    """A loop whose length is known; forward only where it is a while loop."""
    width, times, while_ = shape[-1], rng.randint(0, 3), rng.random() < 0.5
    macs = prod(shape) * width * times

    def run(w: Any, x: Any) -> Any:
        if while_:
            return lax.while_loop(lambda s: s[0] < times, lambda s: (s[0] + 1, s[1] @ w[0]), (0, x))[1]
        return lax.fori_loop(0, times, lambda i, v: v @ w[0], x)

    form = lambda n, t: product(macs, n or t, t)  # noqa: E731
    return Block(
        f"{'while' if while_ else 'fori'}_{times}", Part(run, (width, width)), shape, form, True, steps=not while_
    )


@make
def nested(rng: Any, shape: Shape) -> Block | None:
    """A loop whose turns have a loop of their own, as often as the turn says, or a branch, in every other turn. How many turns
    there are is known, or a value says it; forward only where there is a while loop."""
    width, turns, first, known = shape[-1], rng.randint(1, 3), rng.randint(0, 2), rng.random() < 0.5
    branches = rng.random() < 0.4

    def run(w: Any, x: Any) -> Any:
        last = turns if known else turns + (x != x).sum(dtype="int32")

        def turn(i: Any, v: Any) -> Any:
            if branches:
                return lax.cond((i + first) % 2 == 0, lambda u: u @ w[0], lambda u: u, v)
            return lax.fori_loop(0, i + first, lambda _, u: u @ w[0], v)

        return lax.fori_loop(0, last, turn, x)

    times = sum((i + first) % 2 == 0 if branches else i + first for i in range(turns))
    macs = prod(shape) * width * times
    form = lambda n, t: product(macs, n or t, t)  # noqa: E731
    name = f"nested_{times}{'_cond' if branches else ''}"
    return Block(name, Part(run, (width, width)), shape, form, True, steps=branches and known)


@make
def pointwise(rng: Any, shape: Shape) -> Block | None:
    kind = rng.choice(["relu", "tanh", "gelu", "softmax"])
    return Block(kind, Part(lambda w, x: getattr(jax.nn, kind)(x)), shape, free)


@make
def scaled(rng: Any, shape: Shape) -> Block | None:
    return Block("scaled", Part(lambda w, x: x * w[0], (shape[-1],)), shape, free, True)


@make
def folded(rng: Any, shape: Shape) -> Block | None:
    if len(shape) == 2:
        return Block("one_step", Part(lambda w, x: x[:, None]), (shape[0], 1, shape[1]), free)
    if len(shape) == 4:
        after = (shape[0], shape[1] * shape[2], shape[3])
        return Block("places", Part(lambda w, x: x.reshape(after)), after, free)
    if rng.random() < 0.5:
        return Block("mean", Part(lambda w, x: x.mean(1)), (shape[0], shape[2]), free)
    return Block("map", Part(lambda w, x: x[..., None]), (*shape, 1), free)


PLAIN = list(MAKES)
SURE = [written, with_itself, attention, pointwise]


def _about(name: str, function: Any, blocks: list[Block], **more: Any) -> Block:
    return around(name, Part(function, within=[within(blocks)]), blocks, **more)


def within(blocks: list[Block]) -> Part:
    def run(_: Any, x: Any, *calls: Any) -> Any:
        for call in calls:
            x = call(x)
        return x

    return Part(run, within=[b.part for b in blocks])


@make
def added(rng: Any, shape: Shape) -> Block | None:
    def add(blocks: list[Block]) -> Part:
        return Part(lambda w, x, inner: x + inner(x), within=[within(blocks)])

    return residual(rng, PLAIN, shape, add)


@make
def shared(rng: Any, shape: Shape) -> Block | None:
    part = Part(lambda w, x: jnp.tanh(x @ w[0]) @ w[0], (shape[-1], shape[-1]))
    return Block("shared", part, shape, repeated(prod(shape) * shape[-1]), True)


@make
def stopped(rng: Any, shape: Shape) -> Block | None:
    return Block("stop_gradient", Part(lambda w, x: lax.stop_gradient(x)), shape, free, passes=False)


@make
def gradient(rng: Any, shape: Shape) -> Block | None:
    """The gradient of a part by its input, within the forward pass."""
    blocks = chain(rng, SURE, shape, 2)
    if not blocks:
        return None
    inner = along(blocks, True, False)[0]

    def run(w: Any, x: Any, call: Any) -> Any:
        return jax.grad(lambda v: jnp.square(call(v)).sum())(x)

    return _about("grad", run, blocks, shape=shape, steps=False, passes=False, trained=False,
                  form=lambda n, t: Cost(inner.forward + inner.backward))  # fmt: skip


@make
def checkpointed(rng: Any, shape: Shape) -> Block | None:
    """Computed again for the gradients; what nothing there needs is not: so the last of it is followed by one that does."""
    width = shape[-1]
    macs = prod(shape) * width
    part = Part(lambda w, x: jax.checkpoint(lambda v: jnp.tanh(v @ w[0]))(x), (width, width))

    def form(needs: bool, trained: bool) -> Cost:
        return product(macs, needs, trained) + Cost(again=macs * (needs or trained))

    return Block("checkpoint", part, shape, form, True)


@make
def branch(rng: Any, shape: Shape) -> Block | None:
    """A switch whose index is known as the program is made."""
    width, taken = shape[-1], rng.randint(0, 1)
    part = Part(
        lambda w, x: lax.switch(taken, [lambda: x @ w[0], lambda: x[..., :1] @ w[1]]), (width, 3), (1, 3)
    )  # fmt: skip
    macs = prod(shape) // width * 3 * (1 if taken else width)
    return Block("switch", part, (*shape[:-1], 3), weighed(macs), True, steps=False)


ALL = [*PLAIN, *PLAIN, *MAKES]
"""Plain blocks more often than not."""
