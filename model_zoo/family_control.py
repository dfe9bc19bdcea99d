"""Layers that are shared, and control flow: one layer at two places, a branch and loops decided by values or constants.

Each branch is one block on (2, 4, 5).

How the frameworks differ here
* A layer that stands under two parents is one layer in both frameworks; what walks PyTorch's modules meets it twice.
* TensorFlow puts a conditional and a loop into the graph, both branches and one body; PyTorch decides in Python, and
  what is traced or hooked is what one input made it do.
* How often a loop runs that a value decides is read from one run.  Here it depends on no input: the value is
  halved from 1 until it is below 1/500.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, layer, module, weights
from reconcile.model_zoo.bricks.net import branches, pair

SHAPE: Shape = (4, 5)
STEPS = 3


def dense_of(parts: Callable[[Any], dict[str, Any]], width: int) -> dict[str, Any]:
    """Keras' parts around one dense layer, which is the part ``dense``."""
    import tensorflow as tf

    dense = tf.keras.layers.Dense(width, name="dense")
    return {"dense": dense, **parts(dense)}


def around_dense(
    name: str,
    tf: Callable[[Any, Any], Any],
    torch: Callable[[Any, Any], Any],
    parts_tf: Callable[[Any], dict[str, Any]] = lambda _dense: {},
    parts_torch: Callable[[Any], dict[str, Any]] = lambda _dense: {},
) -> Brick:
    """One dense layer that keeps the width, and what is done with it."""

    def make_tf(name: str, shape: Shape) -> Any:
        return layer(name, tf, **dense_of(parts_tf, shape[-1]))

    def make_torch(shape: Shape) -> Any:
        import torch as framework

        dense = framework.nn.Linear(shape[-1], shape[-1])
        return module(torch, dense=dense, **parts_torch(dense))

    return Brick(name, SHAPE, make_tf, make_torch, lambda a, b: weights.product(a.dense, b.dense))


def parents_tf(dense: Any) -> dict[str, Any]:
    """Two parents of the layer."""
    import tensorflow as tf

    return {name: tf.keras.Sequential([dense], name=name) for name in ("left", "right")}


def parents_torch(dense: Any) -> dict[str, Any]:
    """Two parents of the layer."""
    import torch

    return {name: torch.nn.Sequential(dense) for name in ("left", "right")}


def conditional_tf(self: Any, x: Any) -> Any:
    """The layer where the mean square is large enough, which it is; otherwise its square."""
    import tensorflow as tf

    squares = tf.reduce_mean(x * x)
    return tf.cond(squares > -1.0, lambda: tf.tanh(self.dense(x)), lambda: tf.square(self.dense(x)))


def conditional_torch(self: Any, x: Any) -> Any:
    """The layer where the mean square is large enough, which it is; otherwise its square."""
    import torch

    return torch.tanh(self.dense(x)) if (x * x).mean() > -1.0 else self.dense(x).square()


def counted_tf(self: Any, x: Any) -> Any:
    """The layer three times, in a loop of the graph whose bound is a constant."""
    import tensorflow as tf

    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.tanh(self.dense(y))

    self.dense(x)  # its weights are made outside of the loop
    return tf.while_loop(lambda i, _y: i < STEPS, body, (0, x))[1]


def counted_torch(self: Any, x: Any) -> Any:
    """The layer three times."""
    import torch

    for _ in range(STEPS):
        x = torch.tanh(self.dense(x))
    return x


LIMIT = 0.002


def halving_tf(self: Any, x: Any) -> Any:
    """The layer as often as 1 can be halved until it is below the limit; the 1 is a value of the input's."""
    import tensorflow as tf

    def body(i: Any, size: Any, y: Any) -> Any:
        return i + 1, size * 0.5, tf.tanh(self.dense(y))

    self.dense(x)
    largest = tf.reduce_max(tf.abs(x)) + 1.0
    return tf.while_loop(lambda _i, size, _y: size > LIMIT, body, (0, largest / largest, x))[2]


def halving_torch(self: Any, x: Any) -> Any:
    """The layer as often as 1 can be halved until it is below the limit; the 1 is a value of the input's."""
    import torch

    largest = x.abs().max() + 1.0
    size = largest / largest
    while size > LIMIT:
        size, x = size * 0.5, torch.tanh(self.dense(x))
    return x


BRICKS = (
    around_dense("called_twice", lambda self, x: self.dense(self.dense(x)), lambda self, x: self.dense(self.dense(x))),
    around_dense(
        "two_parents",
        lambda self, x: self.right(self.left(x)),
        lambda self, x: self.right(self.left(x)),
        parents_tf,
        parents_torch,
    ),
    around_dense("conditional", conditional_tf, conditional_torch),
    around_dense("counted_loop", counted_tf, counted_torch),
    around_dense("halving_loop", halving_tf, halving_torch),
)

PAIR, inputs, build_tf, build_torch, copy_weights = pair(
    "family_control",
    branches(BRICKS),
    notes=("Every block is a branch of its own and all outputs are returned; two samples.",),
)
