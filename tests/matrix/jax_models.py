"""Models of JAX for test_jax.py, which run in an environment of their own. ``python jax_models.py FILE`` writes their traces.

Loops and branches whose turns are known are blocks of tests/networks/jax_blocks.py.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx
from jax import lax
from jax.experimental import io_callback
from jax.sharding import Mesh, PartitionSpec

F32 = "float32"
W = jax.ShapeDtypeStruct((6, 6), F32)
X = jax.ShapeDtypeStruct((5, 6), F32)
AUTO = (jax.sharding.AxisType.Auto,)  # JAX 0.12 takes Explicit where nothing is said


class Nnx(nnx.Module):
    """Two layers in a list, and one called twice."""

    def __init__(self, rngs):
        self.conv = nnx.Conv(3, 4, (3, 3), rngs=rngs)
        self.blocks = nnx.List([nnx.Linear(4, 4, rngs=rngs), nnx.Linear(4, 2, rngs=rngs)])

    def __call__(self, x):
        x = nnx.relu(self.conv(x)).mean((1, 2))
        return self.blocks[1](self.blocks[0](self.blocks[0](x)))


class Linen(linen.Module):
    """A dense layer and a GRU, which is a scan."""

    @linen.compact
    def __call__(self, x):
        return linen.RNN(linen.GRUCell(7), name="rnn")(linen.relu(linen.Dense(5)(x)))


class Normed(linen.Module):
    """A batch norm in training, which writes its statistics."""

    @linen.compact
    def __call__(self, x):
        return linen.Dense(2)(linen.BatchNorm(use_running_average=False)(linen.Dense(5)(x)))


class Huge(nnx.Module):
    """More parameters than fit into memory: 4 TB."""

    def __init__(self, rngs):
        self.wide = nnx.Linear(1_000_000, 1_000_000, use_bias=False, rngs=rngs)

    def __call__(self, x):
        return self.wide(x)


def with_nnx():
    return Nnx(nnx.Rngs(0)), jnp.ones((2, 8, 8, 3))


def with_linen():
    return Linen(), jnp.ones((2, 4, 3))


def normed_in_linen():
    return Normed(), jnp.ones((8, 3))


def recurrent():
    """A loop over 97 steps: two products and their sum in each."""

    def run(h, xs, w, u):
        def step(h, x):
            h = h @ w + x @ u
            return h, h

        return lax.scan(step, h, xs)

    return run, tuple(jax.ShapeDtypeStruct(shape, F32) for shape in ((1, 96), (97, 1, 64), (96, 96), (64, 96)))


def same():
    """A convolution with padding."""

    def run(x, kernel):
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return run, tuple(jax.ShapeDtypeStruct(shape, F32) for shape in ((1, 56, 56, 128), (3, 3, 128, 256)))


def huge():
    return Huge(nnx.Rngs(0)), jax.ShapeDtypeStruct((1, 1_000_000), F32)


def scopes():
    """A plain function: layers are its scopes."""

    def net(w, x):
        with jax.named_scope("first"):
            x = x @ w
        with jax.named_scope("second"), jax.named_scope("inner"):
            return jnp.tanh(x @ w)

    return net, (W, X)


def dead():
    """One of two products is not returned, and neither is one part of a scan's carry."""

    def net(w, x):
        (_, kept), _ = lax.scan(lambda c, _: ((c[0] @ w, c[1] @ w @ w), None), (x, x), None, length=3)
        lost = x @ w  # noqa: F841
        return kept

    return net, (W, X)


def remat():
    return (lambda w, x: jax.checkpoint(lambda y: jnp.sin(y @ w))(x)), (W, X)


def custom():
    """A gradient of its own, backwards and forwards: the forward pass is the function."""

    @jax.custom_vjp
    def first(w, x):
        return x @ w

    first.defvjp(lambda w, x: (x @ w @ w, x), lambda x, g: (x.T @ g, g))

    @jax.custom_jvp
    def second(x):
        return x * x

    second.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return (lambda w, x: second(first(w, x))), (W, X)


def while_of_data():
    return (lambda w, x: lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c @ w, x)), (W, X)


def while_of_an_argument():
    def net(n, w, x):
        return lax.fori_loop(0, n, lambda _, c: c @ w, x)

    return net, (jax.ShapeDtypeStruct((), "int32"), W, X)


def loop_in_a_condition():
    """Whether it goes on is asked four times, with 0, 1, 2 and 3 products."""

    def more(state):
        i, x = state
        return (lax.fori_loop(0, i, lambda _, c: c @ jnp.ones((6, 6)), x)[0, 0] * 0 + i) < 3

    return (lambda x: lax.while_loop(more, lambda s: (s[0] + 1, s[1]), (0, x))[1]), (jnp.ones((5, 6)),)


def branches_in_loops():
    """One product in three of five turns; then 0, 1, 2, 2, 2 and 2, as the last branch is that of any number beyond."""

    def net(w, x):
        x, _ = lax.scan(lambda c, i: (lax.cond(i % 2 == 0, lambda v: v @ w, lambda v: v, c), None), x, jnp.arange(5))
        branches = [lambda v: v, lambda v: v @ w, lambda v: v @ w @ w]
        return lax.fori_loop(0, 6, lambda i, c: lax.switch(i, branches, c), x)

    return net, (W, X)


def loops_of_rows():
    """Loops of 0 to 4 turns that vmap makes one: it turns until the last of them ends."""
    return (lambda w, x: jax.vmap(lambda n, row: lax.fori_loop(0, n, lambda _, c: c @ w, row))(jnp.arange(5), x)), (
        W,
        X,
    )


def by_values():
    """Halved from 8 until it is below 1, and as often as an argument says; the weights need no values."""

    def net(n, x, w):
        x, w = lax.while_loop(lambda s: s[0][0, 0] >= 1, lambda s: (s[0] * 0.5, s[1] @ w), (x, w))
        return lax.fori_loop(0, n, lambda _, c: c @ w, x)

    return net, (np.int32(3), jnp.full((5, 6), 8.0), W)


class Halves(nnx.Module):
    """As ``by_values``, with weights that decide."""

    def __init__(self, rngs):
        self.half = nnx.Param(jnp.eye(6) * 0.5)

    def __call__(self, x):
        return lax.while_loop(lambda c: c[0, 0] >= 1, lambda c: c @ self.half[...], x)


def halves_of_nnx():
    return Halves(nnx.Rngs(0)), jnp.full((5, 6), 8.0)


class LinenHalves(linen.Module):
    """The same."""

    @linen.compact
    def __call__(self, x):
        half = self.param("half", lambda key: jnp.eye(6) * 0.5)
        return lax.while_loop(lambda c: c[0, 0] >= 1, lambda c: c @ half, x)


def halves_of_linen():
    return LinenHalves(), jnp.full((5, 6), 8.0)


def as_a_mutable_array_says():
    """No equation hands on what was written there."""

    def net(w, x):
        turns = jax.new_ref(jnp.int32(0))
        turns[...] += 3
        return lax.fori_loop(0, turns[...], lambda _, c: c @ w, x)

    return net, (W, X)


def cond_alike():
    """Whatever the data, one product."""
    return (lambda w, x: lax.cond(x[0, 0] > 0, lambda y: y @ w, lambda y: y @ w, x)), (W, X)


def cond_of_data():
    return (lambda w, x: lax.cond(x[0, 0] > 0, lambda y: y @ w, lambda y: y @ w @ w, x)), (W, X)


def on_rows(mesh):
    """Every device multiplies its rows; their columns' sums are added up."""

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(PartitionSpec(), PartitionSpec("rows")), out_specs=PartitionSpec()
    )
    def net(w, x):
        return lax.psum(jnp.sum(x @ w, axis=0), "rows")

    return net, (W, X)


def sharded():
    return on_rows(Mesh(np.array(jax.devices()[:1]), ("rows",), axis_types=AUTO))


def sharded_by_5():
    """Devices that need not be there."""
    return on_rows(jax.sharding.AbstractMesh((5,), ("rows",), axis_types=AUTO))


def callback():
    """Python code that nothing can look into."""
    return (lambda x: jax.pure_callback(lambda y: y, X, x)), (X,)


def reported():
    """Callbacks without results: what is printed at every turn of a loop, and what is handed to the host."""

    def net(w, x):
        def turn(i, c):
            jax.debug.print("{}", c)
            return c @ w

        x = lax.fori_loop(0, 3, turn, x)
        io_callback(lambda y: None, None, x)
        jax.debug.callback(lambda y: None, x)
        return x

    return net, (W, X)


def added_in_place():
    """An equation without results that adds to a mutable array."""

    def net(w, x):
        total = jax.new_ref(x)
        jax.ref.addupdate(total, ..., x @ w)
        return total[...]

    return net, (W, X)


def reduced():
    """A reduction by a function of the user's own: a + b - 1."""
    return (lambda x: lax.reduce(x, 0.0, lambda a, b: a + b - 1.0, (1,))), (X,)


def solved():
    return (lambda w, x: jnp.linalg.solve(w, x.T)), (W, X)


def only_an_input():
    """Nothing to train."""
    return (lambda x: jnp.tanh(x)), (X,)


TRAINED = (remat, custom, with_linen, normed_in_linen, with_nnx, only_an_input)

TRACED = (
    scopes, dead, remat, custom, while_of_data, while_of_an_argument,
    cond_alike, cond_of_data, sharded, sharded_by_5, callback, reported, added_in_place, reduced,
    solved, loop_in_a_condition, branches_in_loops, loops_of_rows, by_values, as_a_mutable_array_says,
    with_nnx, with_linen, huge,
)  # fmt: skip

if __name__ == "__main__":
    import json
    import sys
    from pathlib import Path

    from reconcile.adapters.jax import model, trace, training
    from reconcile.core.records import to_json

    found = {}
    for make in TRACED:
        net, arguments = model.shape_factory(make)()
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        found[make.__name__] = to_json(trace.trace(model.call(net, given, {})))
    for make in TRAINED:
        net, arguments = model.shape_factory(make)()
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        for optimizer in ("sgd", "adam"):
            step = training.trace(model.call(net, given, {}, training=True), optimizer)
            found[f"{make.__name__} {optimizer}"] = to_json(step)
    Path(sys.argv[1]).write_text(json.dumps(found))
