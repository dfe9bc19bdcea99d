"""Kernels of Pallas for test_pallas.py, which run in an environment of their own. ``python pallas_kernels.py FILE`` writes their
traces. None of them is run: only shapes go through them, and what decides."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu import flash_attention, megablox
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # JAX 0.12 names a package of their own
    from jax.experimental.pallas.ops.gpu import attention, layer_norm

HEADS, LENGTH, SIZE, BLOCK = 3, 64, 8, 16
ROWS, INNER, WIDE = 32, 48, 16


def shape(*sizes, dtype="float32"):
    return jax.ShapeDtypeStruct(sizes, dtype)


def block(*sizes, at):
    return pl.BlockSpec(sizes, at)


def whole(*sizes):
    return pl.BlockSpec(sizes, lambda *_: (0,) * len(sizes))


ROW = block(8, INNER, at=lambda i, *_: (i, 0))
OUT = block(8, WIDE, at=lambda i, *_: (i, 0))
MATRICES = shape(ROWS, INNER), shape(INNER, WIDE)
IN_ROWS = {"in_specs": [ROW, whole(INNER, WIDE)], "out_specs": OUT}


def accumulated():
    """A matmul whose inner axis is the grid's last."""

    def kernel(a, b, out, total):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(a[...], b[...])

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            out[...] = jnp.exp(total[...])

    return pl.pallas_call(
        kernel,
        grid=(ROWS // 8, WIDE // 8, INNER // 16),
        in_specs=[block(8, 16, at=lambda i, j, k: (i, k)), block(16, 8, at=lambda i, j, k: (k, j))],
        out_specs=block(8, 8, at=lambda i, j, k: (i, j)),
        out_shape=shape(ROWS, WIDE),
        scratch_shapes=[pltpu.VMEM((8, 8), jnp.float32)],
    ), MATRICES


def causal_kernel(q, k, v, out):
    @pl.when(pl.program_id(2) <= pl.program_id(1))
    def _():
        out[0] = jnp.dot(jnp.exp(jnp.dot(q[0], k[0].T)), v[0])


def causal_of(heads=HEADS, length=LENGTH):
    rows = block(1, BLOCK, SIZE, at=lambda h, i, j: (h, i, 0))
    columns = block(1, BLOCK, SIZE, at=lambda h, i, j: (h, jnp.minimum(i, j), 0))
    grid = (heads, length // BLOCK, length // BLOCK)
    return pl.pallas_call(
        causal_kernel,
        grid=grid,
        in_specs=[rows, columns, columns],
        out_specs=rows,
        out_shape=shape(heads, length, SIZE),
    )


def causal():
    return causal_of(), (shape(HEADS, LENGTH, SIZE),) * 3


def causal_of_a_batch():
    """Another axis of the grid, of which the kernel does not know."""
    return jax.vmap(causal_of()), (shape(2, HEADS, LENGTH, SIZE),) * 3


def causal_in_a_scan():
    def step(x, _):
        return causal_of()(x, x, x), None

    return lambda x: lax.scan(step, x, None, length=5)[0], (shape(HEADS, LENGTH, SIZE),)


def causal_of_millions():
    """16,777,216 places, of which the heads decide nothing."""
    return causal_of(2**20, LENGTH), (shape(2**20, LENGTH, SIZE),) * 3


def triangle():
    """A loop as long as its place says."""

    def kernel(a, out):
        out[...] = lax.fori_loop(0, pl.program_id(0) + 1, lambda _, c: c + jnp.dot(a[...], a[...]), jnp.zeros((8, 8)))

    return pl.pallas_call(
        kernel, grid=(5,), in_specs=[whole(8, 8)], out_specs=block(8, 8, at=lambda i: (i, 0)), out_shape=shape(40, 8)
    ), (shape(8, 8),)


def some_rows(first):
    """A scalar says how many rows are multiplied; a scope of the kernel's own around that."""

    def kernel(count, a, b, out):
        def inside(held):
            held[...] = b[...]

            @pl.when(pl.program_id(0) < count[0])
            def _():
                out[...] = jnp.dot(a[...], held[...])

        if first:
            count[0] = count[0] - 1
        pl.run_scoped(inside, pltpu.VMEM((INNER, WIDE), jnp.float32))

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(ROWS // 8,), **IN_ROWS)
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=shape(ROWS, WIDE), name="some_rows")


def rows_of_a_constant():
    return lambda a, b: some_rows(False)(np.array([3], "int32"), a, b), MATRICES


def rows_of_a_value():
    return some_rows(False), (np.array([2], "int32"), *MATRICES)


def rows_unknown():
    return some_rows(False), (shape(1, dtype="int32"), *MATRICES)


def rows_written():
    """The kernel itself counts down what decides."""
    return some_rows(True), (np.array([2], "int32"), *MATRICES)


def grid_of(count):
    def kernel(a, b, out):
        out[...] = jnp.dot(a[...], b[...])

    def called(n, a, b):
        return pl.pallas_call(kernel, grid=(n,), **IN_ROWS, out_shape=shape(ROWS, WIDE))(a, b)

    return called, (count, *MATRICES)


def grid_of_a_value():
    return grid_of(np.int32(3))


def grid_unknown():
    return grid_of(shape(dtype="int32"))


def of_data():
    """A block's own values decide."""

    def positive_blocks(a, b, out):
        @pl.when(a[0, 0] > 0)
        def _():
            out[...] = jnp.dot(a[...], b[...])

    return pl.pallas_call(positive_blocks, grid=(ROWS // 8,), **IN_ROWS, out_shape=shape(ROWS, WIDE)), (
        np.ones((ROWS, INNER), "float32"),
        np.ones((INNER, WIDE), "float32"),
    )


def dead_product():
    def kernel(a, out):
        jnp.dot(a[...], a[...])
        out[...] = a[...]

    return pl.pallas_call(kernel, out_shape=shape(8, 8)), (shape(8, 8),)


def gradients(function):
    return lambda *given: jax.grad(lambda *given: function(*given).sum(), (0, 1, 2))(*given)


def of_gpu():
    q = shape(2, 256, 4, 64)
    return gradients(lambda q, k, v: attention.mha(q, k, v, None, causal=True)), (q, q, q)


def norm_of_gpu():
    return layer_norm.layer_norm, (shape(4, 32, 64), shape(64), shape(64))


def of_tpu():
    q = shape(2, 4, 512, 128)
    return gradients(lambda q, k, v: flash_attention.flash_attention(q, k, v, causal=True)), (q, q, q)


def splash_of(mask):
    parts = ("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute", "q_dq", "kv_dq")
    sizes = splash.BlockSizes(**{f"block_{part}": 128 for part in parts})
    both = masks.MultiHeadMask([mask] * 4)
    q = shape(4, 1024, 128)
    return splash.make_splash_mha(both, head_shards=1, q_seq_shards=1, block_sizes=sizes), (q, q, q)


def splash_causal():
    return splash_of(masks.CausalMask((1024, 1024)))


def splash_local():
    """The last 256 places before each and itself."""
    return splash_of(masks.LocalMask((1024, 1024), (256, 0), 0))


def grouped():
    """Groups of 100, 200, 0 and 212 rows in tiles of 128: a tile in which two groups meet is multiplied twice."""
    given = shape(512, 256), shape(4, 256, 128), np.array([100, 200, 0, 212], "int32")
    return lambda *given: megablox.gmm(*given, interpret=True), given


TRACED = (
    accumulated, causal, causal_of_a_batch, causal_in_a_scan, causal_of_millions, triangle, rows_of_a_constant, rows_of_a_value,
    rows_unknown, rows_written, grid_of_a_value, grid_unknown, of_data, dead_product, of_gpu, norm_of_gpu, of_tpu, splash_causal,
    splash_local, grouped,
)  # fmt: skip

if __name__ == "__main__":
    import json
    import sys
    from pathlib import Path

    from reconcile.adapters.jax import model, trace
    from reconcile.core.records import to_json

    found = {make.__name__: to_json(trace.trace(model.call(*make(), {}))) for make in TRACED}
    Path(sys.argv[1]).write_text(json.dumps(found))
