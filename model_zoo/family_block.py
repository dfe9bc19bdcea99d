"""What stands between layers: einsum, residual sums, gates, joins, dropout, and a block that calls functions alone.

Each branch is one block on (2, 5, 6), or (2, 6, 5, 4) for the one that looks at a whole map.

How the frameworks differ here
* A sum, a product and a join are layers in Keras and operators in PyTorch: hooks on PyTorch's modules see none of them.
* A block that calls torch.nn.functional with parameters of its own has no module inside that a hook could see.
* Dropout does nothing in inference, in both.
* tf.einsum stays one op, which tf.profiler has no formula for; torch.einsum becomes a batched product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, layer, module, same, weights
from reconcile.model_zoo.bricks.net import branches, pair

SHAPE: Shape = (5, 6)
MAP: Shape = (6, 5, 4)


def plain(
    name: str,
    tf: Callable[[Any, Any], Any],
    torch: Callable[[Any, Any], Any],
    out: Callable[[Shape], Shape] = same,
) -> Brick:
    """A block without weights: ``tf(tensorflow, x)`` and ``torch(torch, x)``."""

    def make_tf(name: str, _shape: Shape) -> Any:
        import tensorflow as framework

        return layer(name, lambda _self, x: tf(framework, x))

    def make_torch(_shape: Shape) -> Any:
        import torch as framework

        return module(lambda _self, x: torch(framework, x))

    return Brick(name, SHAPE, make_tf, make_torch, out=out)


def dense_block(
    name: str,
    units: dict[str, int],
    tf: Callable[[Any, Any], Any],
    torch: Callable[[Any, Any], Any],
    out: Callable[[Shape], Shape] = same,
    shape: Shape = SHAPE,
) -> Brick:
    """Dense layers ``units`` {name: units, 0 for as many as there are channels} and what is done with them."""

    def make_tf(name: str, shape: Shape) -> Any:
        import tensorflow as framework

        dense = framework.keras.layers.Dense
        return layer(name, tf, **{part: dense(n or shape[-1], name=part) for part, n in units.items()})

    def make_torch(shape: Shape) -> Any:
        import torch as framework

        found, width = {}, shape[-1]
        for part, n in units.items():
            found[part] = framework.nn.Linear(width, n or shape[-1])
            width = n if part == "first" else width
        return module(torch, **found)

    def copy(layer: Any, module: Any) -> None:
        for part in units:
            weights.product(getattr(layer, part), getattr(module, part))

    return Brick(name, shape, make_tf, make_torch, copy, out=out)


def residual_tf(self: Any, x: Any) -> Any:
    """x + second(relu(first(x)))."""
    import tensorflow as tf

    return x + self.second(tf.nn.relu(self.first(x)))


def residual_torch(self: Any, x: Any) -> Any:
    """x + second(relu(first(x)))."""
    import torch

    return x + self.second(torch.relu(self.first(x)))


def gate_tf(self: Any, x: Any) -> Any:
    """A gated product: sigmoid(gate(x)) * value(x)."""
    import tensorflow as tf

    return tf.sigmoid(self.gate(x)) * self.value(x)


def gate_torch(self: Any, x: Any) -> Any:
    """A gated product: sigmoid(gate(x)) * value(x)."""
    import torch

    return torch.sigmoid(self.gate(x)) * self.value(x)


def excite_tf(self: Any, x: Any) -> Any:
    """Squeeze and excite: each channel weighted by what two dense layers make of all channels' means."""
    import tensorflow as tf

    means = tf.reduce_mean(x, (1, 2), keepdims=True)
    return x * tf.sigmoid(self.second(tf.nn.relu(self.first(means))))


def excite_torch(self: Any, x: Any) -> Any:
    """Squeeze and excite: each channel weighted by what two dense layers make of all channels' means."""
    import torch

    means = x.mean((1, 2), keepdim=True)
    return x * torch.sigmoid(self.second(torch.relu(self.first(means))))


def join_tf(self: Any, x: Any) -> Any:
    """The input beside a dense layer of it."""
    import tensorflow as tf

    return tf.concat([x, self.beside(x)], -1)


def join_torch(self: Any, x: Any) -> Any:
    """The input beside a dense layer of it."""
    import torch

    return torch.cat([x, self.beside(x)], -1)


def functional(name: str) -> Brick:
    """Two products, a norm and a gelu by functions on parameters of the block's own: no layer is inside."""
    wide = 7
    parts = ("first", "first_bias", "scale", "shift", "second")

    def tf(name: str, shape: Shape) -> Any:
        import tensorflow as tf

        width = shape[-1]

        class Functional(tf.keras.layers.Layer):
            """Variables, and functions of them."""

            def build(self, _shape: Any) -> None:
                sizes = ((width, wide), (wide,), (wide,), (wide,), (wide, width))
                for part, size in zip(parts, sizes, strict=True):
                    start = "glorot_uniform" if len(size) == 2 else "random_normal"
                    setattr(self, part, self.add_weight(shape=size, initializer=start, name=part))

            def call(self, x: Any) -> Any:
                x = tf.matmul(x, self.first) + self.first_bias
                mean, variance = tf.nn.moments(x, -1, keepdims=True)
                x = tf.nn.batch_normalization(x, mean, variance, self.shift, self.scale, 1e-3)
                return tf.matmul(tf.nn.gelu(x), self.second)

        return Functional(name=name)

    def torch(shape: Shape) -> Any:
        import torch

        functions, width = torch.nn.functional, shape[-1]

        def forward(self: Any, x: Any) -> Any:
            x = functions.linear(x, self.first, self.first_bias)
            x = functions.layer_norm(x, (wide,), self.scale, self.shift, 1e-3)
            return functions.linear(functions.gelu(x), self.second)

        sizes = ((wide, width), (wide,), (wide,), (wide,), (width, wide))
        made = {part: torch.nn.Parameter(torch.randn(size)) for part, size in zip(parts, sizes, strict=True)}
        return module(forward, **made)

    def copy(layer: Any, found: Any) -> None:
        for part in parts:
            weights.put(getattr(found, part), getattr(layer, part).numpy().T)

    return Brick(name, SHAPE, tf, torch, copy)


def dropout(name: str) -> Brick:
    """Dropout in inference: the input itself, twice, so that it is seen to be computed with."""

    def tf(name: str, _shape: Shape) -> Any:
        import tensorflow as tf

        return layer(name, lambda self, x: self.drop(x) + x, drop=tf.keras.layers.Dropout(0.5))

    def torch(_shape: Shape) -> Any:
        import torch

        return module(lambda self, x: self.drop(x) + x, drop=torch.nn.Dropout(0.5))

    return Brick(name, SHAPE, tf, torch)


def steps_by_steps(shape: Shape) -> Shape:
    """One value per pair of steps."""
    return (shape[0], shape[0])


BRICKS = (
    plain(
        "einsum_scores",
        lambda tf, x: tf.einsum("bij,bkj->bik", x, x),
        lambda torch, x: torch.einsum("bij,bkj->bik", x, x),
        steps_by_steps,
    ),
    plain(
        "matmul_scores",
        lambda tf, x: tf.matmul(x, x, transpose_b=True),
        lambda _torch, x: x @ x.transpose(1, 2),
        steps_by_steps,
    ),
    plain(
        "statistics",
        lambda tf, x: (x - tf.reduce_mean(x, -1, keepdims=True)) / (tf.math.reduce_std(x, -1, keepdims=True) + 1e-3),
        lambda _torch, x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + 1e-3),
    ),
    plain(
        "powers",
        lambda tf, x: tf.abs(x) ** 3 - tf.sqrt(tf.abs(x)) + tf.maximum(x, 0.1) * 2.0 - tf.square(x),
        lambda torch, x: x.abs() ** 3 - x.abs().sqrt() + torch.clamp(x, min=0.1) * 2.0 - x.square(),
    ),
    dense_block("residual", {"first": 7, "second": 0}, residual_tf, residual_torch),
    dense_block("gate", {"gate": 0, "value": 0}, gate_tf, gate_torch),
    dense_block("join", {"beside": 3}, join_tf, join_torch, lambda shape: (*shape[:-1], shape[-1] + 3)),
    dense_block("excite", {"first": 2, "second": 0}, excite_tf, excite_torch, shape=MAP),
    functional("functional"),
    dropout("dropout"),
)

PAIR, inputs, build_tf, build_torch, copy_weights = pair(
    "family_block",
    branches(BRICKS),
    notes=("Every block is a branch of its own and all outputs are returned; two samples.",),
)
