"""Keras layers and TensorFlow snippets, one case each: (factory, (shape,) or (shape, dtype))."""

from __future__ import annotations

import tensorflow as tf


class Mod(tf.Module):
    def __init__(self, f):
        self.f = f

    def __call__(self, *a):
        return self.f(*a)


def FN(f):
    return lambda shape: Mod(f)


def dyn(x):
    def body(i, z):
        return i + 1, z * 0.5

    return tf.while_loop(lambda i, z: tf.reduce_sum(tf.abs(z)) > 1e-3, body, (0, x))[1]


def nested(x):
    def body(i, z):
        _, z = tf.while_loop(lambda j, w: j < 3, lambda j, w: (j + 1, tf.matmul(w, w)), (0, z))
        return i + 1, z

    return tf.while_loop(lambda i, z: i < 5, body, (0, x))[1]


def condin(x):
    def body(i, z):
        return i + 1, tf.cond(tf.reduce_sum(z) > 0, lambda: tf.matmul(z, z), lambda: z + 1.0)

    return tf.while_loop(lambda i, z: i < 5, body, (0, x))[1]


@tf.function(jit_compile=True)
def jitted(x):
    return tf.matmul(x, x)


@tf.function
def inner(x):
    return tf.matmul(x, x)


CASES = {
    "dyn": (FN(dyn), (4, 4)),
    "nested": (FN(nested), (4, 4)),
    "condin": (FN(condin), (4, 4)),
    "cond": (FN(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x @ x, lambda: x + 1.0)), (4, 4)),
    "cond2": (FN(lambda x: tf.cond(tf.reduce_sum(x) < 1e9, lambda: x + 1.0, lambda: x @ x)), (4, 4)),
    "switch": (
        FN(lambda x: tf.switch_case(tf.cast(tf.reduce_sum(x) > 0, tf.int32), [lambda: x @ x, lambda: x + x])),
        (4, 4),
    ),
    "jit": (FN(lambda x: jitted(x)), (4, 4)),
    "inner": (FN(lambda x: inner(inner(x))), (4, 4)),
    "scan": (FN(lambda x: tf.scan(lambda a, b: a + b, x)), (4, 4)),
    "map": (FN(lambda x: tf.map_fn(lambda a: a * 2.0, x)), (4, 4)),
    "vmap": (FN(lambda x: tf.vectorized_map(lambda a: tf.reduce_sum(a * 2.0), x)), (4, 4)),
    "einsum": (FN(lambda x: tf.einsum("bij,bkj->bik", x, x)), (2, 5, 3)),
    "bmm": (FN(lambda x: tf.matmul(x, x, transpose_a=True)), (2, 5, 3)),
    "bmma": (FN(lambda x: tf.matmul(x, x, adjoint_a=True)), (2, 5, 3)),
    "bmmT": (FN(lambda x: tf.matmul(x, x, transpose_b=True)), (2, 5, 3)),
    "elem": (
        FN(
            lambda x: (
                tf.reduce_mean(tf.exp((x + 1) * x - x / 2) ** 2) + tf.reduce_sum(tf.sqrt(tf.abs(x))) + tf.reduce_max(x)
            )
        ),
        (2, 5),
    ),
    "norms": (
        FN(
            lambda x: (
                tf.nn.l2_normalize(x, -1)
                + tf.nn.softmax(x)
                + tf.nn.log_softmax(x)
                + tf.math.squared_difference(x, x)
                + tf.add_n([x, x, x])
            )
        ),
        (2, 5),
    ),
    "elem2": (
        FN(
            lambda x: (
                tf.maximum(x, 0)
                + tf.where(x > 0, x, -x)
                + tf.math.rsqrt(x * x + 1.0)
                + tf.math.pow(x, 3)
                + tf.math.erf(x)
                + tf.math.floor(x)
                + tf.clip_by_value(x, -1, 1)
            )
        ),
        (2, 5),
    ),
    "bnf": (
        FN(
            lambda x: tf.compat.v1.nn.fused_batch_norm(
                x, tf.ones(4), tf.ones(4), tf.ones(4), tf.ones(4), is_training=False
            )[0]
        ),
        (2, 5, 5, 4),
    ),
    "var": (FN(lambda x: tf.math.reduce_std(x, -1) + tf.reduce_logsumexp(x, -1) + tf.cumsum(x)[:, 0]), (2, 5)),
    "ints": (FN(lambda x: x * tf.cast(tf.reduce_sum(tf.range(tf.shape(x)[0])), tf.float32)), (2, 5)),
}
