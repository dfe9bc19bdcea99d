"""BERT-base (uncased) without a task head: embeddings, 12 encoder layers of 768, 12 heads and 3072, and the pooler.

Token and segment ids (1, 128) -> the pooled vector of the first token (1, 768).

How the frameworks differ here
* Keras' MultiHeadAttention projects with einsum, one for query, key and value each, and scales the query, steps x width
  products; nn.TransformerEncoderLayer projects all three with one matrix, and scales inside of its attention.
* In inference mode PyTorch runs a whole encoder layer as one fused op on the CPU: hooks on its submodules see nothing.
* Both normalise after the sum (post-norm) with epsilon 1e-12 and use the exact GELU.  Keras writes a layer norm out as
  several ops, PyTorch has one.
* The bias of the key projection has no effect on the output: it adds the same to every score of a row, and softmax does
  not see that.
"""

from typing import Any, List, Tuple

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

EPSILON = 1e-12

WITHOUT_EFFECT = ("key/bias",)
"""Weights that softmax hides: the key's bias adds the same to every score of a row."""


def layers_for(p: Any) -> Tuple[Layer, ...]:
    """The embeddings, one row per encoder layer, the pooler."""
    parts = ("attention", "attention_add", "attention_norm", "ffn_inner", "ffn_outer", "ffn_add", "ffn_norm")
    embeddings = ("word", "position", "segment", "embeddings_add", "embeddings_norm")
    found = [Layer("embeddings", embeddings, embeddings, jax=embeddings)]
    for index in range(p.depth):
        ours = tuple(f"layer_{index}_{part}" for part in parts)
        gelu = (f"layer_{index}_gelu",)
        found.append(Layer(f"layer_{index}", ours, f"encoder.{index}", jax=ours + gelu))
    found.append(Layer("pooler", ("first_token", "pooler"), ("pooler", "tanh"), jax=("pooler", "tanh")))
    return tuple(found)


PAIR = Pair(
    name="bert_base",
    params={
        "batch": 1,
        "steps": 128,
        "depth": 12,
        "width": 768,
        "heads": 12,
        "inner": 3072,
        "vocabulary": 30522,
        "positions": 512,
    },
    notes=(
        "No task head: the pooler's output is the model's. No weights are downloaded: both sides are initialised at random.",
        "The bias of the key projection has no effect on the output (softmax does not see what is added to a whole row), "
        "so equality of outputs says nothing of it; its shape and place are the same on both sides.",
    ),
    published=(
        Published("22.5B", "FLOPs at 128 tokens", "Sun et al. 2020 (MobileBERT), table 4, arXiv:2004.02984"),
        Published(
            "2.9e10",
            "inference FLOPs; the authors' script takes look-ups as products and a classifier at every token",
            "Clark et al. 2020 (ELECTRA), table 1, arXiv:2003.10555; google-research/electra, flops_computation.py",
        ),
    ),
)

PROOF = {"steps": "9", "depth": "2", "width": "24", "heads": "4", "inner": "40", "vocabulary": "50", "positions": "16"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> List[Input]:
    """Token ids and segment ids: (batch, steps) each."""
    return [Input("tokens", (p.batch, p.steps), "int64"), Input("segments", (p.batch, p.steps), "int64")]


def build_tf(p: Any) -> Any:
    """The encoder in Keras' own layers."""
    import tensorflow as tf

    keras = tf.keras.layers

    class Position(tf.keras.layers.Layer):
        """A learned vector per position, for every position of the input."""

        def build(self, shape: Any) -> None:
            self.table = self.add_weight(shape=(p.positions, p.width), initializer="uniform", name="table")

        def call(self, x: Any) -> Any:
            return tf.broadcast_to(self.table[: p.steps], tf.shape(x))

    def normal(name: str) -> Any:
        return keras.LayerNormalization(epsilon=EPSILON, name=name)

    tokens = keras.Input(batch_shape=(p.batch, p.steps), dtype="int64", name="tokens")
    segments = keras.Input(batch_shape=(p.batch, p.steps), dtype="int64", name="segments")
    words = keras.Embedding(p.vocabulary, p.width, name="word")(tokens)
    parts = [words, Position(name="position")(words), keras.Embedding(2, p.width, name="segment")(segments)]
    x = normal("embeddings_norm")(keras.Add(name="embeddings_add")(parts))
    for index in range(p.depth):
        name = f"layer_{index}_"
        attention = keras.MultiHeadAttention(p.heads, p.width // p.heads, name=name + "attention")
        x = normal(name + "attention_norm")(keras.Add(name=name + "attention_add")([x, attention(x, x)]))
        y = keras.Dense(p.inner, activation="gelu", name=name + "ffn_inner")(x)
        y = keras.Dense(p.width, name=name + "ffn_outer")(y)
        x = normal(name + "ffn_norm")(keras.Add(name=name + "ffn_add")([x, y]))
    x = keras.Lambda(_first, name="first_token")(x)
    x = keras.Dense(p.width, activation="tanh", name="pooler")(x)
    return tf.keras.Model([tokens, segments], x)


def _first(x: Any) -> Any:
    """The first token's vector."""
    return x[:, 0]


def build_torch(p: Any) -> Any:
    """The encoder in PyTorch's own layers."""
    import torch

    class Bert(torch.nn.Module):
        """Embeddings, nn.TransformerEncoderLayer, pooler."""

        def __init__(self) -> None:
            super().__init__()
            self.word = torch.nn.Embedding(p.vocabulary, p.width)
            self.position = torch.nn.Embedding(p.positions, p.width)
            self.segment = torch.nn.Embedding(2, p.width)
            self.embeddings_add = Sum()
            self.embeddings_norm = torch.nn.LayerNorm(p.width, eps=EPSILON)
            self.encoder = torch.nn.ModuleList(
                torch.nn.TransformerEncoderLayer(
                    p.width,
                    p.heads,
                    p.inner,
                    activation="gelu",
                    layer_norm_eps=EPSILON,
                    batch_first=True,
                )
                for _ in range(p.depth)
            )
            self.pooler = torch.nn.Linear(p.width, p.width)
            self.tanh = torch.nn.Tanh()

        def forward(self, tokens: Any, segments: Any) -> Any:
            positions = torch.arange(p.steps, device=tokens.device)
            x = self.embeddings_add(self.word(tokens), self.position(positions), self.segment(segments))
            x = self.embeddings_norm(x)
            for layer in self.encoder:
                x = layer(x)
            return self.tanh(self.pooler(x[:, 0]))

    class Sum(torch.nn.Module):
        """The sum of the embeddings, as a layer of its own so that it has a name."""

        def forward(self, *parts: Any) -> Any:
            return parts[0] + parts[1] + parts[2]

    return Bert()


def build_jax(p: Any) -> Any:
    """The encoder in Flax's own modules, under the names of Keras' layers."""
    import jax
    from flax import nnx

    from reconcile.model_zoo.bricks.flax_parts import Function, Sum, Table

    def normal(rngs: Any) -> Any:
        return nnx.LayerNorm(p.width, epsilon=EPSILON, use_fast_variance=False, rngs=rngs)

    class Bert(nnx.Module):
        """Embeddings, nnx.MultiHeadAttention and dense layers, pooler."""

        def __init__(self, rngs: Any) -> None:
            self.word = nnx.Embed(p.vocabulary, p.width, rngs=rngs)
            self.position = Table(p.positions, p.width, rngs)
            self.segment = nnx.Embed(2, p.width, rngs=rngs)
            self.embeddings_add = Sum()
            self.embeddings_norm = normal(rngs)
            for index in range(p.depth):
                parts = {
                    "attention": nnx.MultiHeadAttention(p.heads, p.width, decode=False, rngs=rngs),
                    "attention_add": Sum(),
                    "attention_norm": normal(rngs),
                    "ffn_inner": nnx.Linear(p.width, p.inner, rngs=rngs),
                    "gelu": Function(lambda x: jax.nn.gelu(x, approximate=False)),
                    "ffn_outer": nnx.Linear(p.inner, p.width, rngs=rngs),
                    "ffn_add": Sum(),
                    "ffn_norm": normal(rngs),
                }
                for part, module in parts.items():
                    setattr(self, f"layer_{index}_{part}", module)
            self.pooler = nnx.Linear(p.width, p.width, rngs=rngs)
            self.tanh = Function(jax.numpy.tanh)

        def __call__(self, tokens: Any, segments: Any) -> Any:
            x = self.embeddings_add(self.word(tokens), self.position(p.steps), self.segment(segments))
            x = self.embeddings_norm(x)
            for index in range(p.depth):

                def part(name: str, *given: Any, index: int = index) -> Any:
                    return getattr(self, f"layer_{index}_{name}")(*given)

                x = part("attention_norm", part("attention_add", x, part("attention", x)))
                y = part("ffn_outer", part("gelu", part("ffn_inner", x)))
                x = part("ffn_norm", part("ffn_add", x, y))
            return self.tanh(self.pooler(x[:, 0]))

    return Bert(nnx.Rngs(0))


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

    def weights(name: str) -> Any:
        return tf_model.get_layer(name).get_weights()

    def both(module: Any, name: str) -> None:
        first, second = weights(name)
        put(module.weight, first.T)
        put(module.bias, second)

    for name in ("word", "position", "segment"):
        put(getattr(torch_model, name).weight, weights(name)[0])
    both(torch_model.embeddings_norm, "embeddings_norm")
    for index, layer in enumerate(torch_model.encoder):
        name = f"layer_{index}_"
        held = weights(
            name + "attention"
        )  # kernels (width, heads, per head), biases (heads, per head): query, key, value
        width = held[0].shape[0]
        put(layer.self_attn.in_proj_weight, numpy.concatenate([held[i].reshape(width, width).T for i in (0, 2, 4)]))
        put(layer.self_attn.in_proj_bias, numpy.concatenate([held[i].reshape(width) for i in (1, 3, 5)]))
        put(layer.self_attn.out_proj.weight, held[6].reshape(width, width).T)
        put(layer.self_attn.out_proj.bias, held[7])
        both(layer.norm1, name + "attention_norm")
        both(layer.linear1, name + "ffn_inner")
        both(layer.linear2, name + "ffn_outer")
        both(layer.norm2, name + "ffn_norm")
    both(torch_model.pooler, "pooler")
