"""A LLaMA-style decoder: RMS norms, rotary positions, grouped-query attention, SwiGLU, tied head; SmolLM-135M's sizes.

Token ids (1, 128) -> 30 blocks of width 576, 9 query heads over 3 key and value heads of 64, inner 1536 ->
logits (1, 128, 49152).

How the frameworks differ here
* PyTorch calls scaled_dot_product_attention(is_causal=True, enable_gqa=True), which scales query and key, and repeats the
  keys and values for every head of their group; the TensorFlow side multiplies by groups in one einsum, scales the
  scores, and repeats nothing.
* Causal: both multiply the whole square of scores and mask half of it; no counter here says so.
* Both have an RMS norm as a layer: Keras writes it out as several ops, PyTorch has one.  silu(x) is x * sigmoid(x) in two
  ops in TensorFlow, one in PyTorch.
* The rotation of query and key is written out on both sides: two products and a sum, with the cosines and sines as
  constants.  They are elementwise work that counters of modules do not see.
* The head is tied: it multiplies by the table of the embedding.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.pair import Input, Layer, Pair

EPSILON = 1e-5
THETA = 10000.0

PAIR = Pair(
    name="llama",
    params={
        "batch": 1,
        "steps": 128,
        "depth": 30,
        "width": 576,
        "heads": 9,
        "groups": 3,
        "inner": 1536,
        "vocabulary": 49152,
    },
    notes=(
        "The sizes are SmolLM-135M's, 134,515,008 parameters: a LLaMA of a billion does not fit into one GraphDef "
        "(2 GB), which tf.profiler's frozen variants need.",
        "Causal attention multiplies the whole square of scores on both sides; half of it is masked.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
)

PROOF = {"steps": "7", "depth": "2", "width": "24", "heads": "6", "groups": "2", "inner": "40", "vocabulary": "50"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def layers_for(p: Any) -> tuple[Layer, ...]:
    """The embedding, two rows per block, the head."""
    found = [Layer("word", "word", "word", jax="word")]
    for index in range(p.depth):
        ours, theirs = f"block_{index}_", f"blocks.{index}."
        for row, parts, more in (
            ("attention", ("attention_norm", "attention", "attention_add"), ()),
            ("mlp", ("mlp_norm", "mlp_gate", "mlp_up", "mlp_down", "mlp_add"), ("mlp_product",)),
        ):
            names = (*parts, *more)
            tf = tuple(ours + n for n in names)
            found.append(Layer(ours + row, tf, tuple(theirs + n for n in names), jax=tf))
    found.append(Layer("head", ("final_norm", "head"), ("final_norm", "head"), jax=("final_norm", "head")))
    return tuple(found)


def inputs(p: Any) -> list[Input]:
    """Token ids: (batch, steps)."""
    return [Input("tokens", (p.batch, p.steps), "int64")]


def rotation(p: Any) -> tuple[list[list[float]], list[list[float]]]:
    """Cosine and sine by position and by component of a head: (steps, per head) each, the second half like the first."""
    import math

    half = p.width // p.heads // 2
    angles = [[step * THETA ** (-i / half) for i in range(half)] * 2 for step in range(p.steps)]
    return [[math.cos(a) for a in row] for row in angles], [[math.sin(a) for a in row] for row in angles]


def build_tf(p: Any) -> Any:
    """The decoder with attention written out: Keras has no layer for it with rotary positions."""
    import numpy
    import tensorflow as tf

    keras = tf.keras.layers
    per_head, shared = p.width // p.heads, p.heads // p.groups
    cosine, sine = (numpy.array(table, "float32")[:, None, :] for table in rotation(p))
    future = numpy.triu(numpy.full((p.steps, p.steps), -1e9, "float32"), 1)

    class Attention(tf.keras.layers.Layer):
        """Causal self-attention; ``shared`` query heads to one head of keys and values: (batch, steps, width)."""

        def __init__(self, name: str) -> None:
            super().__init__(name=name)
            narrow = p.groups * per_head
            self.query = keras.Dense(p.width, use_bias=False, name="query")
            self.key = keras.Dense(narrow, use_bias=False, name="key")
            self.value = keras.Dense(narrow, use_bias=False, name="value")
            self.out = keras.Dense(p.width, use_bias=False, name="out")

        def call(self, x: Any) -> Any:
            grouped = (p.batch, p.steps, p.groups, shared, per_head)
            query = tf.reshape(rotate(tf.reshape(self.query(x), (p.batch, p.steps, p.heads, per_head))), grouped)
            key = rotate(tf.reshape(self.key(x), (p.batch, p.steps, p.groups, per_head)))
            value = tf.reshape(self.value(x), (p.batch, p.steps, p.groups, per_head))
            scores = tf.einsum("btgrd,bsgd->bgrts", query, key) * per_head**-0.5
            mixed = tf.einsum("bgrts,bsgd->btgrd", tf.nn.softmax(scores + future), value)
            return self.out(tf.reshape(mixed, (p.batch, p.steps, p.width)))

    class Head(tf.keras.layers.Layer):
        """Logits by the table of the embedding."""

        def __init__(self, embedding: Any, name: str) -> None:
            super().__init__(name=name)
            self.embedding = embedding

        def call(self, x: Any) -> Any:
            return tf.matmul(x, self.embedding.embeddings, transpose_b=True)

    def rotate(x: Any) -> Any:
        first, second = tf.split(x, 2, axis=-1)
        return x * cosine + tf.concat([-second, first], axis=-1) * sine

    def normal(name: str) -> Any:
        return keras.RMSNormalization(epsilon=EPSILON, name=name)

    tokens = keras.Input(batch_shape=(p.batch, p.steps), dtype="int64", name="tokens")
    embedding = keras.Embedding(p.vocabulary, p.width, name="word")
    x = embedding(tokens)
    for index in range(p.depth):
        name = f"block_{index}_"
        y = Attention(name=name + "attention")(normal(name + "attention_norm")(x))
        x = keras.Add(name=name + "attention_add")([x, y])
        y = normal(name + "mlp_norm")(x)
        gate = keras.Dense(p.inner, activation="silu", use_bias=False, name=name + "mlp_gate")(y)
        up = keras.Dense(p.inner, use_bias=False, name=name + "mlp_up")(y)
        y = keras.Multiply(name=name + "mlp_product")([gate, up])
        y = keras.Dense(p.width, use_bias=False, name=name + "mlp_down")(y)
        x = keras.Add(name=name + "mlp_add")([x, y])
    return tf.keras.Model(tokens, Head(embedding, name="head")(normal("final_norm")(x)))


def build_torch(p: Any) -> Any:
    """The decoder with scaled_dot_product_attention over groups."""
    import torch
    from torch import nn

    per_head = p.width // p.heads

    class Add(nn.Module):
        """A sum, as a layer of its own so that it has a name."""

        def forward(self, a: Any, b: Any) -> Any:
            return a + b

    class SwiGLU(nn.Module):
        """silu(gate) * up, as a layer of its own so that it has a name."""

        def forward(self, gate: Any, up: Any) -> Any:
            return nn.functional.silu(gate) * up

    class Attention(nn.Module):
        """Causal self-attention, several query heads to one head of keys and values."""

        def __init__(self) -> None:
            super().__init__()
            narrow = p.groups * per_head
            self.query = nn.Linear(p.width, p.width, bias=False)
            self.key = nn.Linear(p.width, narrow, bias=False)
            self.value = nn.Linear(p.width, narrow, bias=False)
            self.out = nn.Linear(p.width, p.width, bias=False)

        def forward(self, x: Any, cosine: Any, sine: Any) -> Any:
            query, key, value = (
                part(x).view(p.batch, p.steps, -1, per_head).transpose(1, 2)
                for part in (self.query, self.key, self.value)
            )
            query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
            x = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
            return self.out(x.transpose(1, 2).reshape(p.batch, p.steps, p.width))

    class Block(nn.Module):
        """Attention and the gated dense layers, each behind a norm and added to its input."""

        def __init__(self) -> None:
            super().__init__()
            self.attention_norm = nn.RMSNorm(p.width, eps=EPSILON)
            self.attention = Attention()
            self.attention_add = Add()
            self.mlp_norm = nn.RMSNorm(p.width, eps=EPSILON)
            self.mlp_gate = nn.Linear(p.width, p.inner, bias=False)
            self.mlp_up = nn.Linear(p.width, p.inner, bias=False)
            self.mlp_product = SwiGLU()
            self.mlp_down = nn.Linear(p.inner, p.width, bias=False)
            self.mlp_add = Add()

        def forward(self, x: Any, cosine: Any, sine: Any) -> Any:
            x = self.attention_add(x, self.attention(self.attention_norm(x), cosine, sine))
            y = self.mlp_norm(x)
            return self.mlp_add(x, self.mlp_down(self.mlp_product(self.mlp_gate(y), self.mlp_up(y))))

    class Llama(nn.Module):
        """Embedding, blocks, final norm, tied head."""

        def __init__(self) -> None:
            super().__init__()
            self.word = nn.Embedding(p.vocabulary, p.width)
            self.blocks = nn.ModuleList(Block() for _ in range(p.depth))
            self.final_norm = nn.RMSNorm(p.width, eps=EPSILON)
            self.head = nn.Linear(p.width, p.vocabulary, bias=False)
            self.head.weight = self.word.weight
            for name, table in zip(("cosine", "sine"), rotation(p), strict=True):
                self.register_buffer(name, torch.tensor(table), persistent=False)

        def forward(self, tokens: Any) -> Any:
            x = self.word(tokens)
            for block in self.blocks:
                x = block(x, self.cosine, self.sine)
            return self.head(self.final_norm(x))

    def rotate(x: Any, cosine: Any, sine: Any) -> Any:
        first, second = x.chunk(2, dim=-1)
        return x * cosine + torch.cat([-second, first], dim=-1) * sine

    return Llama()


def build_jax(p: Any) -> Any:
    """The decoder in Flax, attention by groups as on the TensorFlow side, under the names of Keras' layers."""
    import jax
    import jax.numpy as jnp
    import numpy
    from flax import nnx

    from reconcile.model_zoo.bricks.flax_parts import Sum, Tied

    per_head, shared = p.width // p.heads, p.heads // p.groups
    cosine, sine = (numpy.array(table, "float32")[:, None, :] for table in rotation(p))
    future = numpy.triu(numpy.full((p.steps, p.steps), -1e9, "float32"), 1)

    def rotate(x: Any) -> Any:
        first, second = jnp.split(x, 2, axis=-1)
        return x * cosine + jnp.concatenate([-second, first], axis=-1) * sine

    def dense(inner: int, outer: int, rngs: Any) -> Any:
        return nnx.Linear(inner, outer, use_bias=False, rngs=rngs)

    class SwiGLU(nnx.Module):
        """silu(gate) * up, as a module of its own so that it has a name."""

        def __call__(self, gate: Any, up: Any) -> Any:
            return jax.nn.silu(gate) * up

    class Attention(nnx.Module):
        """Causal self-attention; ``shared`` query heads to one head of keys and values: (batch, steps, width)."""

        def __init__(self, rngs: Any) -> None:
            narrow = p.groups * per_head
            self.query, self.key = dense(p.width, p.width, rngs), dense(p.width, narrow, rngs)
            self.value, self.out = dense(p.width, narrow, rngs), dense(p.width, p.width, rngs)

        def __call__(self, x: Any) -> Any:
            query = rotate(self.query(x).reshape(p.batch, p.steps, p.heads, per_head))
            query = query.reshape(p.batch, p.steps, p.groups, shared, per_head)
            key = rotate(self.key(x).reshape(p.batch, p.steps, p.groups, per_head))
            value = self.value(x).reshape(p.batch, p.steps, p.groups, per_head)
            scores = jnp.einsum("btgrd,bsgd->bgrts", query, key) * per_head**-0.5
            mixed = jnp.einsum("bgrts,bsgd->btgrd", jax.nn.softmax(scores + future), value)
            return self.out(mixed.reshape(p.batch, p.steps, p.width))

    class Llama(nnx.Module):
        """Embedding, blocks, final norm, tied head."""

        def __init__(self, rngs: Any) -> None:
            self.word = nnx.Embed(p.vocabulary, p.width, rngs=rngs)
            for index in range(p.depth):
                parts = {
                    "attention_norm": nnx.RMSNorm(p.width, epsilon=EPSILON, rngs=rngs),
                    "attention": Attention(rngs),
                    "attention_add": Sum(),
                    "mlp_norm": nnx.RMSNorm(p.width, epsilon=EPSILON, rngs=rngs),
                    "mlp_gate": dense(p.width, p.inner, rngs),
                    "mlp_up": dense(p.width, p.inner, rngs),
                    "mlp_product": SwiGLU(),
                    "mlp_down": dense(p.inner, p.width, rngs),
                    "mlp_add": Sum(),
                }
                for part, module in parts.items():
                    setattr(self, f"block_{index}_{part}", module)
            self.final_norm = nnx.RMSNorm(p.width, epsilon=EPSILON, rngs=rngs)
            self.head = Tied()

        def __call__(self, tokens: Any) -> Any:
            x = self.word(tokens)
            for index in range(p.depth):

                def part(name: str, *given: Any, index: int = index) -> Any:
                    return getattr(self, f"block_{index}_{name}")(*given)

                x = part("attention_add", x, part("attention", part("attention_norm", x)))
                y = part("mlp_norm", x)
                x = part("mlp_add", x, part("mlp_down", part("mlp_product", part("mlp_gate", y), part("mlp_up", y))))
            return self.head(self.final_norm(x), self.word.embedding[...])

    return Llama(nnx.Rngs(0))


def arrays_for(weights: Any, p: Any) -> Any:
    """The Flax model's weights: its modules have the names of Keras' layers."""
    from reconcile.model_zoo.bricks.flax_parts import arrays

    return arrays(weights)


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import numpy
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))

    def only(name: str) -> Any:
        return tf_model.get_layer(name).get_weights()[0]

    put(torch_model.word.weight, only("word"))
    for index, block in enumerate(torch_model.blocks):
        name = f"block_{index}_"
        for part in ("query", "key", "value", "out"):
            kernel = getattr(tf_model.get_layer(name + "attention"), part).get_weights()[0]
            put(getattr(block.attention, part).weight, kernel.T)
        for part in ("attention_norm", "mlp_norm"):
            put(getattr(block, part).weight, only(name + part))
        for part in ("mlp_gate", "mlp_up", "mlp_down"):
            put(getattr(block, part).weight, only(name + part).T)
    put(torch_model.final_norm.weight, only("final_norm"))
