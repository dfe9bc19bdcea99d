"""T5-small: an encoder and a decoder of 6 blocks each, width 512, 8 heads of 64, inner 2048, relative position bias.

Source ids (1, 512) and target ids (1, 114), the lengths it was trained with -> logits (1, 114, 32128).

How the frameworks differ here
* Attention is written out on both sides, as in the published code: no scale, no bias in any projection, a learned bias per
  head and per distance added to the scores.  TensorFlow multiplies with einsum, PyTorch with matmul.
* The bias by distance is looked up once per stack and shared by its blocks; the distances are constants.  The decoder's
  mask is added to it: half of its own square of scores is multiplied in vain.
* The norm is an RMS norm: Keras writes it out as several ops, PyTorch has one.
* The head is tied: it multiplies the scaled states by the table of the embedding, which both inputs share.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.pair import Input, Layer, Pair

EPSILON = 1e-6
PROJECTIONS = ("query", "key", "value", "out")

PAIR = Pair(
    name="t5_small",
    params={
        "batch": 1,
        "steps": 512,
        "targets": 114,
        "depth": 6,
        "width": 512,
        "heads": 8,
        "per_head": 64,
        "inner": 2048,
        "vocabulary": 32128,
        "buckets": 32,
        "distance": 128,
    },
    notes=(
        "The sizes are those of Raffel et al. 2020 (T5), arXiv:1910.10683, section 3.7 (Small), with the vocabulary "
        "padded to 32,128 as in its published checkpoint; ReLU between the dense layers.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
)

PROOF = {
    "steps": "9",
    "targets": "5",
    "depth": "2",
    "width": "24",
    "heads": "3",
    "per_head": "10",
    "inner": "40",
    "vocabulary": "50",
    "buckets": "8",
    "distance": "16",
}
"""Equivalence is shown here, where it takes seconds to change every weight."""

PARTS = {
    "attention": ("attention_norm", "attention", "attention_add"),
    "cross": ("cross_norm", "cross", "cross_add"),
    "mlp": ("mlp_norm", "mlp_inner", "mlp_outer", "mlp_add"),
}


def layers_for(p: Any) -> tuple[Layer, ...]:
    """The embedding, per stack its position bias, two or three rows per block and its norm, and the head."""
    found = [Layer("word", "word", "word")]
    for stack in ("encoder", "decoder"):
        found.append(Layer(stack + "_bias", stack + "_bias", stack + "_bias"))
        for index in range(p.depth):
            for row, parts in PARTS.items():
                if (stack, row) != ("encoder", "cross"):
                    ours = tuple(f"{stack}_{index}_{part}" for part in parts)
                    theirs = tuple(f"{stack}.{index}.{part}" for part in parts)
                    more = (f"{stack}.{index}.relu",) if row == "mlp" else ()
                    found.append(Layer(f"{stack}_{index}_{row}", ours, theirs + more))
        found.append(Layer(stack + "_norm", stack + "_norm", stack + "_norm"))
    found.append(Layer("head", ("scale", "head"), ("scale", "head")))
    return tuple(found)


def inputs(p: Any) -> list[Input]:
    """Token ids of the source (batch, steps) and of the target (batch, targets)."""
    return [Input("source", (p.batch, p.steps), "int64"), Input("target", (p.batch, p.targets), "int64")]


def buckets(p: Any, steps: int, both_ways: bool) -> list[list[int]]:
    """Which entry of the bias table each query (row) and key (column) take: exact when near, by logarithm when far."""
    import math

    def of(distance: int) -> int:
        count, start = p.buckets, 0
        if both_ways:
            count //= 2
            start = count if distance > 0 else 0
        distance = abs(distance) if both_ways else max(-distance, 0)
        exact = count // 2
        if distance < exact:
            return start + distance
        share = math.log(distance / exact) / math.log(p.distance / exact)
        return start + min(exact + int(share * (count - exact)), count - 1)

    return [[of(key - query) for key in range(steps)] for query in range(steps)]


def build_tf(p: Any) -> Any:
    """Both stacks with attention written out."""
    import numpy
    import tensorflow as tf

    keras = tf.keras.layers

    class Bias(tf.keras.layers.Layer):
        """The bias of every pair of positions: (1, heads, steps, steps); in the decoder with its mask."""

        def __init__(self, steps: int, causal: bool, name: str) -> None:
            super().__init__(name=name)
            self.places = numpy.array(buckets(p, steps, both_ways=not causal), "int32")
            self.mask = numpy.triu(numpy.full((steps, steps), -1e9, "float32"), 1) if causal else None

        def build(self, shape: Any) -> None:
            self.table = self.add_weight(shape=(p.buckets, p.heads), initializer="uniform", name="table")

        def call(self, x: Any) -> Any:
            found = tf.transpose(tf.gather(self.table, self.places), (2, 0, 1))[None]
            return found if self.mask is None else found + self.mask

    class Attention(tf.keras.layers.Layer):
        """Attention of x (batch, queries, width) to a source (batch, keys, width), unscaled."""

        def __init__(self, name: str) -> None:
            super().__init__(name=name)
            for part in PROJECTIONS:
                features = p.width if part == "out" else p.heads * p.per_head
                setattr(self, part, keras.Dense(features, use_bias=False, name=part))

        def call(self, x: Any, source: Any, bias: Any = None) -> Any:
            def heads(y: Any) -> Any:
                return tf.reshape(y, (p.batch, y.shape[1], p.heads, p.per_head))

            scores = tf.einsum("bqhd,bkhd->bhqk", heads(self.query(x)), heads(self.key(source)))
            shares = tf.nn.softmax(scores if bias is None else scores + bias)
            mixed = tf.einsum("bhqk,bkhd->bqhd", shares, heads(self.value(source)))
            return self.out(tf.reshape(mixed, (p.batch, x.shape[1], p.heads * p.per_head)))

    class Head(tf.keras.layers.Layer):
        """Logits by the table of the embedding."""

        def __init__(self, embedding: Any, name: str) -> None:
            super().__init__(name=name)
            self.embedding = embedding

        def call(self, x: Any) -> Any:
            return tf.matmul(x, self.embedding.embeddings, transpose_b=True)

    def normal(name: str) -> Any:
        return keras.RMSNormalization(epsilon=EPSILON, name=name)

    def added(x: Any, name: str, y: Any) -> Any:
        return keras.Add(name=name + "_add")([x, y])

    def stack(name: str, x: Any, source: Any = None) -> Any:
        """The encoder, or with a source the decoder."""
        bias = Bias(x.shape[1], source is not None, name=name + "_bias")(x)
        for index in range(p.depth):
            part = f"{name}_{index}_attention"
            y = normal(part + "_norm")(x)
            x = added(x, part, Attention(name=part)(y, y, bias))
            if source is not None:
                part = f"{name}_{index}_cross"
                x = added(x, part, Attention(name=part)(normal(part + "_norm")(x), source))
            part = f"{name}_{index}_mlp"
            y = keras.Dense(p.inner, activation="relu", use_bias=False, name=part + "_inner")(normal(part + "_norm")(x))
            x = added(x, part, keras.Dense(p.width, use_bias=False, name=part + "_outer")(y))
        return normal(name + "_norm")(x)

    source = keras.Input(batch_shape=(p.batch, p.steps), dtype="int64", name="source")
    target = keras.Input(batch_shape=(p.batch, p.targets), dtype="int64", name="target")
    embedding = keras.Embedding(p.vocabulary, p.width, name="word")
    x = stack("decoder", embedding(target), stack("encoder", embedding(source)))
    x = keras.Rescaling(p.width**-0.5, name="scale")(x)
    return tf.keras.Model([source, target], Head(embedding, name="head")(x))


def build_torch(p: Any) -> Any:
    """Both stacks as the published PyTorch code writes them."""
    import torch
    from torch import nn

    class Add(nn.Module):
        """A sum, as a layer of its own so that it has a name."""

        def forward(self, a: Any, b: Any) -> Any:
            return a + b

    class Scale(nn.Module):
        """The states before the tied head."""

        def forward(self, x: Any) -> Any:
            return x * p.width**-0.5

    class Bias(nn.Module):
        """The bias of every pair of positions: (1, heads, steps, steps); in the decoder with its mask."""

        def __init__(self, steps: int, causal: bool) -> None:
            super().__init__()
            self.table = nn.Embedding(p.buckets, p.heads)
            mask = torch.full((steps, steps), -1e9).triu(1) if causal else None
            self.register_buffer("places", torch.tensor(buckets(p, steps, both_ways=not causal)), persistent=False)
            self.register_buffer("mask", mask, persistent=False)

        def forward(self) -> Any:
            found = self.table(self.places).permute(2, 0, 1)[None]
            return found if self.mask is None else found + self.mask

    class Attention(nn.Module):
        """Attention of x (batch, queries, width) to a source (batch, keys, width), unscaled."""

        def __init__(self) -> None:
            super().__init__()
            for part in PROJECTIONS[:3]:
                setattr(self, part, nn.Linear(p.width, p.heads * p.per_head, bias=False))
            self.out = nn.Linear(p.heads * p.per_head, p.width, bias=False)

        def forward(self, x: Any, source: Any, bias: Any = None) -> Any:
            def heads(y: Any) -> Any:
                return y.view(p.batch, -1, p.heads, p.per_head).transpose(1, 2)

            scores = torch.matmul(heads(self.query(x)), heads(self.key(source)).transpose(2, 3))
            shares = torch.softmax(scores if bias is None else scores + bias, dim=-1)
            mixed = torch.matmul(shares, heads(self.value(source)))
            return self.out(mixed.transpose(1, 2).reshape(p.batch, -1, p.heads * p.per_head))

    class Block(nn.Module):
        """Attention, in the decoder attention to the encoder, and the dense layers, each behind a norm."""

        def __init__(self, decoder: bool) -> None:
            super().__init__()
            for part in ("attention", "cross")[: 1 + decoder]:
                setattr(self, part + "_norm", nn.RMSNorm(p.width, eps=EPSILON))
                setattr(self, part, Attention())
                setattr(self, part + "_add", Add())
            self.mlp_norm = nn.RMSNorm(p.width, eps=EPSILON)
            self.mlp_inner = nn.Linear(p.width, p.inner, bias=False)
            self.relu = nn.ReLU()
            self.mlp_outer = nn.Linear(p.inner, p.width, bias=False)
            self.mlp_add = Add()

        def forward(self, x: Any, bias: Any, source: Any = None) -> Any:
            y = self.attention_norm(x)
            x = self.attention_add(x, self.attention(y, y, bias))
            if source is not None:
                x = self.cross_add(x, self.cross(self.cross_norm(x), source))
            return self.mlp_add(x, self.mlp_outer(self.relu(self.mlp_inner(self.mlp_norm(x)))))

    class T5(nn.Module):
        """Encoder, decoder, tied head."""

        def __init__(self) -> None:
            super().__init__()
            self.word = nn.Embedding(p.vocabulary, p.width)
            self.encoder_bias = Bias(p.steps, causal=False)
            self.encoder = nn.ModuleList(Block(decoder=False) for _ in range(p.depth))
            self.encoder_norm = nn.RMSNorm(p.width, eps=EPSILON)
            self.decoder_bias = Bias(p.targets, causal=True)
            self.decoder = nn.ModuleList(Block(decoder=True) for _ in range(p.depth))
            self.decoder_norm = nn.RMSNorm(p.width, eps=EPSILON)
            self.scale = Scale()
            self.head = nn.Linear(p.width, p.vocabulary, bias=False)
            self.head.weight = self.word.weight

        def forward(self, source: Any, target: Any) -> Any:
            x, bias = self.word(source), self.encoder_bias()
            for block in self.encoder:
                x = block(x, bias)
            source, bias = self.encoder_norm(x), self.decoder_bias()
            x = self.word(target)
            for block in self.decoder:
                x = block(x, bias, source)
            return self.head(self.scale(self.decoder_norm(x)))

    return T5()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import numpy
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))

    def only(layer: Any) -> Any:
        return layer.get_weights()[0]

    put(torch_model.word.weight, only(tf_model.get_layer("word")))
    for stack in ("encoder", "decoder"):
        put(getattr(torch_model, stack + "_bias").table.weight, only(tf_model.get_layer(stack + "_bias")))
        put(getattr(torch_model, stack + "_norm").weight, only(tf_model.get_layer(stack + "_norm")))
        for index, block in enumerate(getattr(torch_model, stack)):
            for kind in ("attention", "cross")[: 1 + (stack == "decoder")]:
                name = f"{stack}_{index}_{kind}"
                put(getattr(block, kind + "_norm").weight, only(tf_model.get_layer(name + "_norm")))
                for part in PROJECTIONS:
                    kernel = only(getattr(tf_model.get_layer(name), part))
                    put(getattr(getattr(block, kind), part).weight, kernel.T)
            name = f"{stack}_{index}_mlp"
            put(block.mlp_norm.weight, only(tf_model.get_layer(name + "_norm")))
            put(block.mlp_inner.weight, only(tf_model.get_layer(name + "_inner")).T)
            put(block.mlp_outer.weight, only(tf_model.get_layer(name + "_outer")).T)
