"""ViT-B/16: patches of 16 x 16, a class token, 12 pre-norm encoder blocks of 768, 12 heads and 3072, and a head.

Image (1, 3, 224, 224) in PyTorch, (1, 224, 224, 3) in TensorFlow -> patches (1, 196, 768) -> tokens (1, 197, 768) ->
logits (1, 1000).

How the frameworks differ here
* The same image goes in as channels first; the TensorFlow side moves the channels last, as is usual there.
* Keras' MultiHeadAttention projects with einsum, one for query, key and value each, and scales the query;
  nn.MultiheadAttention projects all three with one matrix, and scales inside of its attention.
* In inference mode PyTorch runs nn.MultiheadAttention as one fused op on the CPU: hooks on its submodules see nothing.
* Both normalise before the sum (pre-norm) with epsilon 1e-6 and use the exact GELU.  Keras writes a layer norm and a GELU
  out as several ops, PyTorch has one each.
* The bias of the key projection has no effect on the output: it adds the same to every score of a row, and softmax does
  not see that.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

EPSILON = 1e-6

WITHOUT_EFFECT = ("key/bias",)
"""Weights that softmax hides: the key's bias adds the same to every score of a row."""

PAIR = Pair(
    name="vit_b16",
    params={
        "batch": 1,
        "size": 224,
        "patch": 16,
        "depth": 12,
        "width": 768,
        "heads": 12,
        "inner": 3072,
        "classes": 1000,
    },
    notes=(
        "The bias of the key projection has no effect on the output (softmax does not see what is added to a whole row), "
        "so equality of outputs says nothing of it; its shape and place are the same on both sides.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published("17.56G", "GFLOPS, that is 1e9 multiply-adds", "torchvision documentation, vit_b_16, IMAGENET1K_V1"),
        Published(
            "17.58G",
            "GMACs, vit_base_patch16_224",
            "timm, results/benchmark-infer-fp32-nchw-pt240-cpu-i7_12700h-dynamo.csv",
        ),
    ),
)

PROOF = {"size": "24", "patch": "8", "depth": "2", "width": "24", "heads": "4", "inner": "40", "classes": "7"}
"""Equivalence is shown here, where it takes seconds to change every weight."""

ATTENTION = ("attention_norm", "attention", "attention_add")
MLP = ("mlp_norm", "mlp_inner", "mlp_outer", "mlp_add")


def layers_for(p: Any) -> tuple[Layer, ...]:
    """The embeddings, two rows per block, the head."""
    embeddings = ("patches", "class_token", "position", "embeddings_add")
    found = [Layer("embeddings", ("channels_last", "rows", *embeddings), embeddings)]
    for index in range(p.depth):
        ours, theirs = f"block_{index}_", f"blocks.{index}."
        for row, parts, more in (("attention", ATTENTION, ()), ("mlp", MLP, ("gelu",))):
            tf, torch = tuple(ours + part for part in parts), tuple(theirs + part for part in (*parts, *more))
            found.append(Layer(ours + row, tf, torch))
    found.append(Layer("head", ("final_norm", "first_token", "head"), ("final_norm", "head")))
    return tuple(found)


def inputs(p: Any) -> list[Input]:
    """One image: (batch, 3, size, size)."""
    return [Input("image", (p.batch, 3, p.size, p.size))]


def tokens(p: Any) -> int:
    """Patches and the class token."""
    side: int = p.size // p.patch
    return side * side + 1


def build_tf(p: Any) -> Any:
    """The encoder in Keras' own layers."""
    import tensorflow as tf

    keras = tf.keras.layers

    class ClassToken(tf.keras.layers.Layer):
        """A learned vector before the patches: (batch, n, width) -> (batch, n + 1, width)."""

        def build(self, shape: Any) -> None:
            self.token = self.add_weight(shape=(1, 1, p.width), initializer="uniform", name="token")

        def call(self, x: Any) -> Any:
            return tf.concat([tf.broadcast_to(self.token, (p.batch, 1, p.width)), x], axis=1)

    class Position(tf.keras.layers.Layer):
        """A learned vector per token."""

        def build(self, shape: Any) -> None:
            self.table = self.add_weight(shape=(1, tokens(p), p.width), initializer="uniform", name="table")

        def call(self, x: Any) -> Any:
            return tf.broadcast_to(self.table, tf.shape(x))

    def normal(name: str) -> Any:
        return keras.LayerNormalization(epsilon=EPSILON, name=name)

    image = keras.Input(batch_shape=(p.batch, 3, p.size, p.size), name="image")
    x = keras.Permute((2, 3, 1), name="channels_last")(image)
    x = keras.Conv2D(p.width, p.patch, strides=p.patch, name="patches")(x)
    x = keras.Reshape((tokens(p) - 1, p.width), name="rows")(x)
    x = ClassToken(name="class_token")(x)
    x = keras.Add(name="embeddings_add")([x, Position(name="position")(x)])
    for index in range(p.depth):
        name = f"block_{index}_"
        y = normal(name + "attention_norm")(x)
        y = keras.MultiHeadAttention(p.heads, p.width // p.heads, name=name + "attention")(y, y)
        x = keras.Add(name=name + "attention_add")([x, y])
        y = normal(name + "mlp_norm")(x)
        y = keras.Dense(p.inner, activation="gelu", name=name + "mlp_inner")(y)
        y = keras.Dense(p.width, name=name + "mlp_outer")(y)
        x = keras.Add(name=name + "mlp_add")([x, y])
    x = normal("final_norm")(x)
    x = keras.Lambda(lambda all_tokens: all_tokens[:, 0], name="first_token")(x)
    return tf.keras.Model(image, keras.Dense(p.classes, name="head")(x))


def build_torch(p: Any) -> Any:
    """The encoder with nn.MultiheadAttention, as torchvision has it."""
    import torch
    from torch import nn

    class Add(nn.Module):
        """A sum, as a layer of its own so that it has a name."""

        def forward(self, a: Any, b: Any) -> Any:
            return a + b

    class ClassToken(nn.Module):
        """A learned vector before the patches."""

        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.zeros(1, 1, p.width))

        def forward(self, x: Any) -> Any:
            return torch.cat([self.token.expand(p.batch, -1, -1), x], dim=1)

    class Position(nn.Module):
        """A learned vector per token."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(1, tokens(p), p.width))

        def forward(self) -> Any:
            return self.table

    class Block(nn.Module):
        """Attention and two dense layers, each behind a norm and added to its input."""

        def __init__(self) -> None:
            super().__init__()
            self.attention_norm = nn.LayerNorm(p.width, eps=EPSILON)
            self.attention = nn.MultiheadAttention(p.width, p.heads, batch_first=True)
            self.attention_add = Add()
            self.mlp_norm = nn.LayerNorm(p.width, eps=EPSILON)
            self.mlp_inner = nn.Linear(p.width, p.inner)
            self.gelu = nn.GELU()
            self.mlp_outer = nn.Linear(p.inner, p.width)
            self.mlp_add = Add()

        def forward(self, x: Any) -> Any:
            y = self.attention_norm(x)
            y, _ = self.attention(y, y, y, need_weights=False)
            x = self.attention_add(x, y)
            return self.mlp_add(x, self.mlp_outer(self.gelu(self.mlp_inner(self.mlp_norm(x)))))

    class ViT(nn.Module):
        """Patches, class token, positions, blocks, head on the class token."""

        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, p.width, p.patch, stride=p.patch)
            self.class_token = ClassToken()
            self.position = Position()
            self.embeddings_add = Add()
            self.blocks = nn.Sequential(*(Block() for _ in range(p.depth)))
            self.final_norm = nn.LayerNorm(p.width, eps=EPSILON)
            self.head = nn.Linear(p.width, p.classes)

        def forward(self, image: Any) -> Any:
            x = self.patches(image).flatten(2).transpose(1, 2)
            x = self.embeddings_add(self.class_token(x), self.position())
            return self.head(self.final_norm(self.blocks(x))[:, 0])

    return ViT()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import numpy
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))

    def weights(name: str) -> Any:
        return tf_model.get_layer(name).get_weights()

    def both(module: Any, name: str) -> None:
        first, second = weights(name)
        put(module.weight, first.T)
        put(module.bias, second)

    kernel, bias = weights("patches")  # (patch, patch, 3, width)
    put(torch_model.patches.weight, kernel.transpose(3, 2, 0, 1))
    put(torch_model.patches.bias, bias)
    put(torch_model.class_token.token, weights("class_token")[0])
    put(torch_model.position.table, weights("position")[0])
    for index, block in enumerate(torch_model.blocks):
        name = f"block_{index}_"
        held = weights(name + "attention")  # query, key, value: kernel (width, heads, per head) and bias each; output
        width = held[0].shape[0]
        put(block.attention.in_proj_weight, numpy.concatenate([held[i].reshape(width, width).T for i in (0, 2, 4)]))
        put(block.attention.in_proj_bias, numpy.concatenate([held[i].reshape(width) for i in (1, 3, 5)]))
        put(block.attention.out_proj.weight, held[6].reshape(width, width).T)
        put(block.attention.out_proj.bias, held[7])
        for part in ("attention_norm", "mlp_norm", "mlp_inner", "mlp_outer"):
            both(getattr(block, part), name + part)
    both(torch_model.final_norm, "final_norm")
    both(torch_model.head, "head")
