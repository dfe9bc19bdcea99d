"""Whisper (tiny): a convolutional stem and an encoder over sound, a decoder over text that attends to it, a tied head.

Log-mel spectrogram (1, 3000, 80) -> conv 3, conv 3/2 -> (1, 1500, 384) -> 4 encoder blocks; tokens (1, 448) -> 4 decoder
blocks, each with causal attention to the text and attention to the sound -> logits (1, 448, 51865).

How the frameworks differ here
* The PyTorch side calls scaled_dot_product_attention, one op; the TensorFlow side writes scores, mask, softmax and sum out.
* Causal: both multiply the whole square of scores; TensorFlow adds a mask to it, PyTorch is told is_causal.
* Keras' "same" would pad the strided convolution behind its input alone; both sides here pad one on each side.
* Keras' Conv1D runs as a Conv2D on an image one pixel high, with its bias apart; Keras writes the GELU out with Erfc.
* The key projections have no bias, the others do.  The head multiplies by the table of the embedding.
* This is one pass over all of the text, as in training.  A decoder that writes one token at a time with a cache does the
  same products for the text and the sound once; without a cache it does this for every token.
"""

from __future__ import annotations

import math
from typing import Any

from reconcile.model_zoo.pair import Input, Layer, Pair

EPSILON = 1e-5


def parts(side: str) -> tuple[str, ...]:
    """What a block of this side consists of."""
    return ("attention", "cross", "mlp") if side == "decoder" else ("attention", "mlp")


def layers(depth: int) -> tuple[Layer, ...]:
    """Stem, embeddings, two rows per encoder block and three per decoder block, the head."""
    found = [Layer(name, name, (name, name + "_gelu")) for name in ("conv1", "conv2")]
    for side in ("encoder", "decoder"):
        start = (("word",) if side == "decoder" else ()) + (side + "_positions",)
        found.append(Layer(side + "_embeddings", start, start))
        for index in range(depth):
            for part in parts(side):
                row = f"{side}_{index}_{part}"
                inside = ("_norm", "_inner", "_outer", "_add") if part == "mlp" else ("_norm", "", "_add")
                names = tuple(row + end for end in inside)
                found.append(Layer(row, names, (*names, row + "_gelu") if part == "mlp" else names))
        found.append(Layer(side + "_norm", side + "_norm", side + "_norm"))
    return (*found, Layer("head", "head", "head"))


PAIR = Pair(
    name="whisper",
    params={
        "batch": 1,
        "frames": 3000,
        "mels": 80,
        "steps": 448,
        "depth": 4,
        "width": 384,
        "heads": 6,
        "vocabulary": 51865,
    },
    layers=layers(4),
    notes=(
        "One pass over 30 seconds of sound and all 448 places of the text, as in training; nothing is generated.",
        "Causal attention multiplies the whole square of scores on both sides; half of it is masked.",
        "The dimensions of Whisper tiny (Radford et al. 2022, arXiv:2212.04356), untrained.",
    ),
)

PROOF = {"frames": "10", "mels": "5", "steps": "4", "depth": "1", "width": "12", "heads": "3", "vocabulary": "20"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Log-mel spectrogram (batch, frames, mels) and token ids (batch, steps)."""
    return [Input("sound", (p.batch, p.frames, p.mels)), Input("tokens", (p.batch, p.steps), "int64")]


def sinusoids(length: int, width: int) -> list[list[float]]:
    """The encoder's fixed positions (length, width): sines, then cosines, of timescales from 1 to 10,000."""
    half = width // 2
    scales = [10_000 ** (-index / (half - 1)) for index in range(half)]
    angles = [[place * scale for scale in scales] for place in range(length)]
    return [[math.sin(a) for a in row] + [math.cos(a) for a in row] for row in angles]


def build_tf(p: Any) -> Any:
    """The Keras model."""
    import tensorflow as tf

    keras = tf.keras.layers
    per_head = p.width // p.heads

    class Attention(tf.keras.layers.Layer):
        """Attention of x (batch, steps, width) to a source (batch, sources, width)."""

        def __init__(self, name: str, causal: bool = False) -> None:
            super().__init__(name=name)
            self.causal = causal
            self.query = keras.Dense(p.width, name="query")
            self.key = keras.Dense(p.width, use_bias=False, name="key")
            self.value = keras.Dense(p.width, name="value")
            self.out = keras.Dense(p.width, name="out")

        def heads(self, x: tf.Tensor) -> tf.Tensor:
            return tf.transpose(tf.reshape(x, (p.batch, x.shape[1], p.heads, per_head)), (0, 2, 1, 3))

        def call(self, x: tf.Tensor, source: tf.Tensor) -> tf.Tensor:
            query = self.heads(self.query(x) * per_head**-0.5)
            key, value = self.heads(self.key(source)), self.heads(self.value(source))
            scores = tf.matmul(query, key, transpose_b=True)
            if self.causal:
                scores += tf.constant([[-1e9 if k > q else 0.0 for k in range(p.steps)] for q in range(p.steps)])
            x = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
            return self.out(tf.reshape(x, (p.batch, x.shape[1], p.width)))

    class Positions(tf.keras.layers.Layer):
        """A vector per position, added: fixed sinusoids or learned."""

        def __init__(self, name: str, learned: bool) -> None:
            super().__init__(name=name)
            self.learned = learned

        def build(self, shape: Any) -> None:
            if self.learned:
                self.table = self.add_weight(shape=shape[1:], initializer="uniform", name="table")
            else:
                self.table = tf.constant(sinusoids(*shape[1:]))

        def call(self, x: tf.Tensor) -> tf.Tensor:
            return x + self.table

    class Head(tf.keras.layers.Layer):
        """Logits by the table of the embedding."""

        def __init__(self, embedding: Any, name: str) -> None:
            super().__init__(name=name)
            self.embedding = embedding

        def call(self, x: tf.Tensor) -> tf.Tensor:
            return tf.matmul(x, self.embedding.embeddings, transpose_b=True)

    def normal(x: Any, name: str) -> Any:
        return keras.LayerNormalization(epsilon=EPSILON, name=name)(x)

    def attend(x: Any, name: str, source: Any = None, causal: bool = False) -> Any:
        y = normal(x, name + "_norm")
        y = Attention(name, causal)(y, y if source is None else source)
        return keras.Add(name=name + "_add")([x, y])

    def blocks(x: Any, side: str, sound: Any = None) -> Any:
        for index in range(p.depth):
            name = f"{side}_{index}_"
            x = attend(x, name + "attention", causal=sound is not None)
            if sound is not None:
                x = attend(x, name + "cross", sound)
            y = normal(x, name + "mlp_norm")
            y = keras.Dense(4 * p.width, activation="gelu", name=name + "mlp_inner")(y)
            y = keras.Dense(p.width, name=name + "mlp_outer")(y)
            x = keras.Add(name=name + "mlp_add")([x, y])
        return normal(x, side + "_norm")

    sound = x = keras.Input(batch_shape=(p.batch, p.frames, p.mels), name="sound")
    for index, stride in ((1, 1), (2, 2)):
        x = keras.ZeroPadding1D(1, name=f"conv{index}_pad")(x)
        x = keras.Conv1D(p.width, 3, stride, activation="gelu", name=f"conv{index}")(x)
    heard = blocks(Positions("encoder_positions", learned=False)(x), "encoder")
    tokens = keras.Input(batch_shape=(p.batch, p.steps), dtype="int64", name="tokens")
    embedding = keras.Embedding(p.vocabulary, p.width, name="word")
    x = blocks(Positions("decoder_positions", learned=True)(embedding(tokens)), "decoder", heard)
    return tf.keras.Model([sound, tokens], Head(embedding, name="head")(x))


def build_torch(p: Any) -> Any:
    """The PyTorch module; it takes the spectrogram as Keras does, its frequencies last."""
    import torch
    from torch import nn
    from torch.nn.functional import scaled_dot_product_attention

    class Attention(nn.Module):
        """Attention of x (batch, steps, width) to a source (batch, sources, width)."""

        def __init__(self, causal: bool = False) -> None:
            super().__init__()
            self.causal = causal
            self.query = nn.Linear(p.width, p.width)
            self.key = nn.Linear(p.width, p.width, bias=False)
            self.value = nn.Linear(p.width, p.width)
            self.out = nn.Linear(p.width, p.width)

        def forward(self, x: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
            q, k, v = (
                part.view(p.batch, -1, p.heads, p.width // p.heads).transpose(1, 2)
                for part in (self.query(x), self.key(source), self.value(source))
            )
            x = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.out(x.transpose(1, 2).flatten(2))

    class Positions(nn.Module):
        """A vector per position, added: fixed sinusoids or learned."""

        def __init__(self, length: int, learned: bool) -> None:
            super().__init__()
            if learned:
                self.table = nn.Parameter(torch.randn(length, p.width) * 0.01)
            else:
                self.register_buffer("table", torch.tensor(sinusoids(length, p.width)), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.table

    class Add(nn.Module):
        """A residual sum, as a layer of its own so that it has a name."""

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    class Whisper(nn.Module):
        """Same layers, same names."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv1d(p.mels, p.width, 3, padding=1)
            self.conv1_gelu = nn.GELU()
            self.conv2 = nn.Conv1d(p.width, p.width, 3, stride=2, padding=1)
            self.conv2_gelu = nn.GELU()
            self.encoder_positions = Positions((p.frames + 1) // 2, learned=False)
            self.word = nn.Embedding(p.vocabulary, p.width)
            self.decoder_positions = Positions(p.steps, learned=True)
            for side in ("encoder", "decoder"):
                for index in range(p.depth):
                    for part in parts(side):
                        self._part(f"{side}_{index}_{part}", causal=side == "decoder" and part == "attention")
                self.add_module(side + "_norm", nn.LayerNorm(p.width, eps=EPSILON))
            self.head = nn.Linear(p.width, p.vocabulary, bias=False)
            self.head.weight = self.word.weight

        def _part(self, name: str, causal: bool) -> None:
            self.add_module(name + "_norm", nn.LayerNorm(p.width, eps=EPSILON))
            if name.endswith("mlp"):
                self.add_module(name + "_inner", nn.Linear(p.width, 4 * p.width))
                self.add_module(name + "_gelu", nn.GELU())
                self.add_module(name + "_outer", nn.Linear(4 * p.width, p.width))
            else:
                self.add_module(name, Attention(causal))
            self.add_module(name + "_add", Add())

        def _run(self, side: str, x: torch.Tensor, sound: torch.Tensor | None = None) -> torch.Tensor:
            for index in range(p.depth):
                for part in parts(side):
                    name = f"{side}_{index}_{part}"
                    y = getattr(self, name + "_norm")(x)
                    if part == "mlp":
                        for end in ("_inner", "_gelu", "_outer"):
                            y = getattr(self, name + end)(y)
                    else:
                        y = getattr(self, name)(y, sound if part == "cross" else y)
                    x = getattr(self, name + "_add")(x, y)
            return getattr(self, side + "_norm")(x)

        def forward(self, sound: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
            x = self.conv1_gelu(self.conv1(sound.transpose(1, 2)))
            x = self.conv2_gelu(self.conv2(x)).transpose(1, 2)
            heard = self._run("encoder", self.encoder_positions(x))
            return self.head(self._run("decoder", self.decoder_positions(self.word(tokens)), heard))

    return Whisper()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    import torch

    def put(module: Any, arrays: list[Any]) -> None:
        weights = [torch.as_tensor(array) for array in arrays]
        # kernels (kernel, in, out) or (in, out), norms (width,)
        order = {3: (2, 1, 0), 2: (1, 0), 1: (0,)}[weights[0].dim()]
        module.weight.data.copy_(weights[0].permute(order))
        if len(weights) == 2:
            module.bias.data.copy_(weights[1])

    for layer in tf_model.layers:
        module: Any = getattr(torch_model, layer.name, None)
        if hasattr(layer, "query"):
            for name in ("query", "key", "value", "out"):
                put(getattr(module, name), getattr(layer, name).get_weights())
        elif layer.name == "decoder_positions":
            module.table.data.copy_(torch.as_tensor(layer.get_weights()[0]))
        elif layer.name == "word":
            module.weight.data.copy_(torch.as_tensor(layer.get_weights()[0]))
        elif layer.name != "head" and layer.get_weights():
            put(module, layer.get_weights())
