"""Attention: many heads, grouped queries, causal, across two sequences; by the frameworks' own layers and written out.

Each branch is one layer on (2, 5, 8): samples, steps, channels.

How the frameworks differ here
* Keras projects queries, keys and values by three einsums, nn.MultiheadAttention by one matrix; nn.MultiheadAttention that
  is asked for no weights calls the fused attention, otherwise the products one by one.
* In inference PyTorch may run a whole nn.MultiheadAttention as one op on the CPU.
* A causal mask saves neither framework a product: the scores that it hides are computed, too.
* Keras repeats the keys and values of a group for each of its queries, PyTorch's fused attention does so inside.
* The fused attention scales queries and keys by a root each, Keras the query.
* The bias of a key projection has no effect: it adds the same to every score of a row, and softmax does not see that.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, layer, module, weights
from reconcile.model_zoo.bricks.net import branches, pair

WITHOUT_EFFECT = ("key/bias",)
"""Weights that softmax hides: the key's bias adds the same to every score of a row."""

SHAPE: Shape = (5, 8)
HEADS = 2


def fits(shape: Shape) -> bool:
    """As many channels as heads can share."""
    return shape[-1] % (2 * HEADS) == 0


def heads_of(x: Any, heads: int) -> Any:
    """(batch, steps, heads * width) -> (batch, heads, steps, width), in PyTorch."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def multi_head(name: str, causal: bool = False, need_weights: bool = False, across: bool = False) -> Brick:
    """Keras' MultiHeadAttention beside nn.MultiheadAttention; ``across``: the first two steps ask all of them."""

    def tf(name: str, shape: Shape) -> Any:
        import tensorflow as tf

        made = tf.keras.layers.MultiHeadAttention(HEADS, shape[-1] // HEADS, name=name)
        return lambda x: made(x[:, :2] if across else x, x, use_causal_mask=causal)

    def torch(shape: Shape) -> Any:
        import torch

        def forward(self: Any, x: Any) -> Any:
            steps = x.shape[1]
            mask = torch.ones(steps, steps, dtype=torch.bool, device=x.device).triu(1) if causal else None
            query = x[:, :2] if across else x
            return self.inner(query, x, x, attn_mask=mask, is_causal=causal, need_weights=need_weights)[0]

        return module(forward, inner=torch.nn.MultiheadAttention(shape[-1], HEADS, batch_first=True))

    return Brick(
        name,
        SHAPE,
        tf,
        torch,
        joined,
        out=lambda shape: (2 if across else shape[0], shape[-1]),
        fits=lambda shape: fits(shape) and shape[0] >= 2,
    )


def joined(layer: Any, module: Any) -> None:
    """Keras' three projections (width, heads, per head) as PyTorch's one, and the output's."""
    import numpy

    held = layer.get_weights()  # kernel and bias of query, key, value and output
    width = held[0].shape[0]
    weights.put(module.in_proj_weight, numpy.concatenate([held[i].reshape(width, -1).T for i in (0, 2, 4)]))
    weights.put(module.in_proj_bias, numpy.concatenate([held[i].reshape(-1) for i in (1, 3, 5)]))
    weights.put(module.out_proj.weight, held[6].reshape(-1, width).T)
    weights.put(module.out_proj.bias, held[7])


PROJECTIONS = ("query", "key", "value", "out")


def projections(width: int, keys: int) -> dict[str, Any]:
    """PyTorch's linear layers: query and output of ``width``, key and value of ``keys`` units."""
    import torch

    sizes = {"query": (width, width), "key": (width, keys), "value": (width, keys), "out": (width, width)}
    return {name: torch.nn.Linear(*size) for name, size in sizes.items()}


def apart(layer: Any, module: Any) -> None:
    """Projections one by one: kernels (width, heads, per head) or (width, units), the output's (heads, per head, width)."""
    held = layer.get_weights()
    for index, name in enumerate(PROJECTIONS):
        kernel, bias = held[2 * index], held[2 * index + 1]
        linear = getattr(module, name)
        weights.put(linear.weight, kernel.reshape(-1, kernel.shape[-1] if name == "out" else bias.size).T)
        weights.put(linear.bias, bias.reshape(-1))


def grouped(name: str, groups: int) -> Brick:
    """Queries of four heads that share the keys and values of ``groups``."""
    heads = 2 * HEADS

    def tf(name: str, shape: Shape) -> Any:
        import tensorflow as tf

        made = tf.keras.layers.GroupQueryAttention(shape[-1] // heads, heads, groups, name=name)
        return lambda x: made(x, x)

    def torch(shape: Shape) -> Any:
        import torch

        def forward(self: Any, x: Any) -> Any:
            found = torch.nn.functional.scaled_dot_product_attention(
                heads_of(self.query(x), heads),
                heads_of(self.key(x), groups),
                heads_of(self.value(x), groups),
                enable_gqa=True,
            )
            return self.out(found.transpose(1, 2).flatten(2))

        return module(forward, **projections(shape[-1], shape[-1] // heads * groups))

    return Brick(name, SHAPE, tf, torch, apart, fits=fits)


def written_out(name: str, causal: bool = False) -> Brick:
    """Projections, scores, softmax and sum in elementary operations on both sides."""

    def tf(name: str, shape: Shape) -> Any:
        import tensorflow as tf

        width = shape[-1]

        def split(x: Any) -> Any:
            return tf.transpose(tf.reshape(x, (-1, x.shape[1], HEADS, width // HEADS)), (0, 2, 1, 3))

        def call(self: Any, x: Any) -> Any:
            query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
            scores = tf.matmul(query, key, transpose_b=True) * (width // HEADS) ** -0.5
            if causal:
                steps = x.shape[1]
                scores = tf.where(tf.linalg.band_part(tf.ones((steps, steps), tf.bool), -1, 0), scores, -1e9)
            found = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
            return self.out(tf.reshape(found, (-1, x.shape[1], width)))

        return layer(name, call, **{part: tf.keras.layers.Dense(width, name=part) for part in PROJECTIONS})

    def torch(shape: Shape) -> Any:
        import torch

        width = shape[-1]

        def forward(self: Any, x: Any) -> Any:
            query, key, value = (heads_of(part(x), HEADS) for part in (self.query, self.key, self.value))
            scores = query @ key.transpose(-1, -2) * (width // HEADS) ** -0.5
            if causal:
                later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
                scores = scores.masked_fill(later, -1e9)
            return self.out((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))

        return module(forward, **projections(width, width))

    return Brick(name, SHAPE, tf, torch, apart, fits=fits)


def fused(name: str, causal: bool = False) -> Brick:
    """The input's attention to itself, without any weights: Keras' Attention, PyTorch's fused call."""

    def tf(name: str, _shape: Shape) -> Any:
        import tensorflow as tf

        made = tf.keras.layers.Attention(name=name)
        return lambda x: made([x, x], use_causal_mask=causal)

    def torch(_shape: Shape) -> Any:
        import torch

        attention = torch.nn.functional.scaled_dot_product_attention
        return module(lambda _self, x: attention(x, x, x, is_causal=causal, scale=1.0))

    return Brick(name, SHAPE, tf, torch)


BRICKS = (
    multi_head("multi_head"),
    multi_head("multi_head_weights", need_weights=True),
    multi_head("multi_head_causal", causal=True),
    multi_head("multi_head_across", across=True),
    grouped("grouped_query", 2),
    grouped("multi_query", 1),
    written_out("written_out"),
    written_out("written_out_causal", causal=True),
    fused("dot_product"),
    fused("dot_product_causal", causal=True),
)

PAIR, inputs, build_tf, build_torch, copy_weights = pair(
    "family_attention",
    branches(BRICKS),
    notes=(
        "Every layer is a branch of its own and all outputs are returned; two samples.",
        "The bias of a key projection has no effect on the output (softmax does not see what is added to a whole row).",
    ),
)
