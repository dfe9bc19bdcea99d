"""GPT-2 (124M) with its language-model head: embeddings, 12 pre-norm decoder blocks of 768, 12 heads and 3072, tied head.

Token ids (1, 1024) -> logits (1, 1024, 50257).

How the frameworks differ here
* Keras' MultiHeadAttention projects with einsum, one for query, key and value each, and forms every score; the PyTorch
  side is written as it usually is: one Linear for all three and scaled_dot_product_attention(is_causal=True).
* Causal: both multiply the whole square of scores and mask half of it afterwards; a kernel that skips the masked half
  does half of that work, and no counter here says so.
* Both use the tanh form of GELU; Keras writes it out, with a power, PyTorch has one op.
* The head is tied: it multiplies by the table of the embedding.  Keras has a layer for that of its own here, PyTorch a
  Linear that shares its weight.
* The bias of the key projection has no effect on the output: it adds the same to every score of a row, and softmax does
  not see that.
"""

from typing import Any, List, Tuple

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

EPSILON = 1e-5

WITHOUT_EFFECT = ("key/bias",)
"""Weights that softmax hides: the key's bias adds the same to every score of a row."""


def layers_for(p: Any) -> Tuple[Layer, ...]:
    """The embeddings, two rows per block, the head."""
    embeddings = ("word", "position", "embeddings_add")
    found = [Layer("embeddings", embeddings, embeddings, jax=embeddings)]
    for index in range(p.depth):
        ours, theirs = f"block_{index}_", f"blocks.{index}."
        for row, parts in (
            ("attention", ("attention_norm", "attention", "attention_add")),
            ("mlp", ("mlp_norm", "mlp_inner", "mlp_outer", "mlp_add")),
        ):
            gelu = ("gelu",) if row == "mlp" else ()
            tf, jax = tuple(ours + part for part in parts), tuple(ours + part for part in parts + gelu)
            found.append(Layer(ours + row, tf, tuple(theirs + part for part in parts + gelu), jax=jax))
    found.append(Layer("head", ("final_norm", "head"), ("final_norm", "head"), jax=("final_norm", "head")))
    return tuple(found)


PAIR = Pair(
    name="gpt2",
    params={
        "batch": 1,
        "steps": 1024,
        "depth": 12,
        "width": 768,
        "heads": 12,
        "vocabulary": 50257,
    },
    notes=(
        "Causal attention multiplies the whole square of scores on both sides; half of it is masked.",
        "The bias of the key projection has no effect on the output (softmax does not see what is added to a whole row), "
        "so equality of outputs says nothing of it; its shape and place are the same on both sides.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published(
            "291648307200",
            "FLOPs of a forward pass over 1024 tokens: products alone, two per multiply-add",
            "karpathy/nanoGPT, transformer_sizing.ipynb",
        ),
        Published(
            "879894724608",
            "FLOPs of forward and backward over 1024 tokens, (6N + 12LHQT) per token, N = 124,337,664",
            "karpathy/nanoGPT, transformer_sizing.ipynb, after Chowdhery et al. 2022 (PaLM), arXiv:2204.02311",
        ),
    ),
)

PROOF = {"steps": "9", "depth": "2", "width": "24", "heads": "3", "vocabulary": "50"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> List[Input]:
    """Token ids: (batch, steps)."""
    return [Input("tokens", (p.batch, p.steps), "int64")]


def build_tf(p: Any) -> Any:
    """The decoder in Keras' own layers."""
    import tensorflow as tf

    keras = tf.keras.layers

    class Position(tf.keras.layers.Layer):
        """A learned vector per position."""

        def build(self, shape: Any) -> None:
            self.table = self.add_weight(shape=(p.steps, p.width), initializer="uniform", name="table")

        def call(self, x: Any) -> Any:
            return tf.broadcast_to(self.table, tf.shape(x))

    class Head(tf.keras.layers.Layer):
        """Logits by the table of the embedding."""

        def __init__(self, embedding: Any, name: str) -> None:
            super().__init__(name=name)
            self.embedding = embedding

        def call(self, x: Any) -> Any:
            return tf.matmul(x, self.embedding.embeddings, transpose_b=True)

    def gelu(x: Any) -> Any:
        return tf.nn.gelu(x, approximate=True)

    def normal(name: str) -> Any:
        return keras.LayerNormalization(epsilon=EPSILON, name=name)

    tokens = keras.Input(batch_shape=(p.batch, p.steps), dtype="int64", name="tokens")
    embedding = keras.Embedding(p.vocabulary, p.width, name="word")
    x = embedding(tokens)
    x = keras.Add(name="embeddings_add")([x, Position(name="position")(x)])
    for index in range(p.depth):
        name = f"block_{index}_"
        y = normal(name + "attention_norm")(x)
        attention = keras.MultiHeadAttention(p.heads, p.width // p.heads, name=name + "attention")
        x = keras.Add(name=name + "attention_add")([x, attention(y, y, use_causal_mask=True)])
        y = normal(name + "mlp_norm")(x)
        y = keras.Dense(4 * p.width, activation=gelu, name=name + "mlp_inner")(y)
        y = keras.Dense(p.width, name=name + "mlp_outer")(y)
        x = keras.Add(name=name + "mlp_add")([x, y])
    x = Head(embedding, name="head")(normal("final_norm")(x))
    return tf.keras.Model(tokens, x)


def build_torch(p: Any) -> Any:
    """The decoder as it is usually written in PyTorch."""
    import torch

    class Add(torch.nn.Module):
        """A sum, as a layer of its own so that it has a name."""

        def forward(self, x: Any, y: Any) -> Any:
            return x + y

    class Attention(torch.nn.Module):
        """Causal self-attention: one projection for query, key and value."""

        def __init__(self) -> None:
            super().__init__()
            self.project = torch.nn.Linear(p.width, 3 * p.width)
            self.out = torch.nn.Linear(p.width, p.width)

        def forward(self, x: Any) -> Any:
            shape = (p.batch, p.steps, p.heads, p.width // p.heads)
            q, k, v = [part.view(shape).transpose(1, 2) for part in self.project(x).split(p.width, dim=-1)]
            x = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(x.transpose(1, 2).reshape(p.batch, p.steps, p.width))

    class Block(torch.nn.Module):
        """Attention and two dense layers, each behind a norm and added to its input."""

        def __init__(self) -> None:
            super().__init__()
            self.attention_norm = torch.nn.LayerNorm(p.width, eps=EPSILON)
            self.attention = Attention()
            self.attention_add = Add()
            self.mlp_norm = torch.nn.LayerNorm(p.width, eps=EPSILON)
            self.mlp_inner = torch.nn.Linear(p.width, 4 * p.width)
            self.gelu = torch.nn.GELU(approximate="tanh")
            self.mlp_outer = torch.nn.Linear(4 * p.width, p.width)
            self.mlp_add = Add()

        def forward(self, x: Any) -> Any:
            x = self.attention_add(x, self.attention(self.attention_norm(x)))
            return self.mlp_add(x, self.mlp_outer(self.gelu(self.mlp_inner(self.mlp_norm(x)))))

    class GPT2(torch.nn.Module):
        """Embeddings, blocks, final norm, tied head."""

        def __init__(self) -> None:
            super().__init__()
            self.word = torch.nn.Embedding(p.vocabulary, p.width)
            self.position = torch.nn.Embedding(p.steps, p.width)
            self.embeddings_add = Add()
            self.blocks = torch.nn.ModuleList(Block() for _ in range(p.depth))
            self.final_norm = torch.nn.LayerNorm(p.width, eps=EPSILON)
            self.head = torch.nn.Linear(p.width, p.vocabulary, bias=False)
            self.head.weight = self.word.weight

        def forward(self, tokens: Any) -> Any:
            x = self.embeddings_add(self.word(tokens), self.position(torch.arange(p.steps, device=tokens.device)))
            for block in self.blocks:
                x = block(x)
            return self.head(self.final_norm(x))

    return GPT2()


def build_jax(p: Any) -> Any:
    """The decoder in Flax's own modules, under the names of Keras' layers."""
    import jax
    from flax import nnx

    from reconcile.model_zoo.bricks.flax_parts import Function, Sum, Table, Tied

    def normal(rngs: Any) -> Any:
        return nnx.LayerNorm(p.width, epsilon=EPSILON, use_fast_variance=False, rngs=rngs)

    class GPT2(nnx.Module):
        """Embeddings, blocks, final norm, tied head."""

        def __init__(self, rngs: Any) -> None:
            self.word = nnx.Embed(p.vocabulary, p.width, rngs=rngs)
            self.position = Table(p.steps, p.width, rngs)
            self.embeddings_add = Sum()
            for index in range(p.depth):
                parts = {
                    "attention_norm": normal(rngs),
                    "attention": nnx.MultiHeadAttention(p.heads, p.width, decode=False, rngs=rngs),
                    "attention_add": Sum(),
                    "mlp_norm": normal(rngs),
                    "mlp_inner": nnx.Linear(p.width, 4 * p.width, rngs=rngs),
                    "gelu": Function(lambda x: jax.nn.gelu(x, approximate=True)),
                    "mlp_outer": nnx.Linear(4 * p.width, p.width, rngs=rngs),
                    "mlp_add": Sum(),
                }
                for part, module in parts.items():
                    setattr(self, f"block_{index}_{part}", module)
            self.final_norm = normal(rngs)
            self.head = Tied()

        def __call__(self, tokens: Any) -> Any:
            mask = nnx.make_causal_mask(tokens)
            x = self.embeddings_add(self.word(tokens), self.position(p.steps))
            for index in range(p.depth):

                def part(name: str, *given: Any, index: int = index, **named: Any) -> Any:
                    return getattr(self, f"block_{index}_{name}")(*given, **named)

                x = part("attention_add", x, part("attention", part("attention_norm", x), mask=mask))
                y = part("mlp_outer", part("gelu", part("mlp_inner", part("mlp_norm", x))))
                x = part("mlp_add", x, y)
            return self.head(self.final_norm(x), self.word.embedding[...])

    return GPT2(nnx.Rngs(0))


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

    def both(module: Any, name: str) -> None:
        first, second = tf_model.get_layer(name).get_weights()
        put(module.weight, first.T)
        put(module.bias, second)

    put(torch_model.word.weight, tf_model.get_layer("word").get_weights()[0])
    put(torch_model.position.weight, tf_model.get_layer("position").get_weights()[0])
    for index, block in enumerate(torch_model.blocks):
        name = f"block_{index}_"
        held = tf_model.get_layer(name + "attention").get_weights()  # query, key, value: kernel and bias each; output
        width = held[0].shape[0]
        put(block.attention.project.weight, numpy.concatenate([held[i].reshape(width, width).T for i in (0, 2, 4)]))
        put(block.attention.project.bias, numpy.concatenate([held[i].reshape(width) for i in (1, 3, 5)]))
        put(block.attention.out.weight, held[6].reshape(width, width).T)
        put(block.attention.out.bias, held[7])
        for part in ("attention_norm", "mlp_norm", "mlp_inner", "mlp_outer"):
            both(getattr(block, part), name + part)
    both(torch_model.final_norm, "final_norm")
