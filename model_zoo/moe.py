"""A mixture-of-experts block in the sizes of a small decoder: router, top 2 of 8, gated experts, dense dispatch.

States (1, 256, 512) -> norm -> router (256, 8) -> the 2 largest shares, renewed to add up to 1 -> 8 experts of inner 1792
on every token (8, 256, 1792) -> weighted sum (256, 512) -> added to the states.

How the frameworks differ here
* Dense dispatch: every expert sees every token and unchosen results are weighted with 0, as it is done where shapes must
  be known beforehand.  A router that sends each token to its 2 experts alone does 2/8 of the experts' work; how many
  tokens each expert then gets depends on the data.
* TensorFlow spreads the chosen shares with one_hot, a product and a sum; PyTorch with scatter, which computes nothing.
* TensorFlow runs all experts in one einsum per kernel, PyTorch in one bmm.
* TopKV2 and aten.topk find the same: kernels differ in how many comparisons they make, and that depends on the data.  One
  definition stands for both (see reconcile/work/ordering.py).
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.pair import Input, Layer, Pair

EPSILON = 1e-5
KERNELS = ("gate", "up", "down")

PAIR = Pair(
    name="moe",
    params={"batch": 1, "steps": 256, "width": 512, "inner": 1792, "experts": 8, "chosen": 2},
    layers=tuple(Layer(name, name, name) for name in ("norm", "router", "choose", "experts", "combine", "add")),
    notes=(
        "Dense dispatch: every expert runs on every token, so the work does not depend on the data; dispatch by index "
        "would do chosen / experts of it.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
)

PROOF = {"steps": "7", "width": "12", "inner": "20", "experts": "5"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """States of a decoder: (batch, steps, width)."""
    return [Input("states", (p.batch, p.steps, p.width))]


def build_tf(p: Any) -> Any:
    """The block with one-hot gates and einsum over all experts."""
    import tensorflow as tf

    keras = tf.keras.layers

    class Choose(tf.keras.layers.Layer):
        """Scores (batch, steps, experts) -> the largest shares at their experts, 0 at all others, the same shape."""

        def call(self, scores: Any) -> Any:
            top, places = tf.math.top_k(tf.nn.softmax(scores), p.chosen)
            top = top / tf.reduce_sum(top, axis=-1, keepdims=True)
            return tf.reduce_sum(tf.one_hot(places, p.experts) * top[..., None], axis=-2)

    class Experts(tf.keras.layers.Layer):
        """Every expert on every token: (batch, steps, width) -> (batch, steps, experts, width)."""

        def build(self, shape: Any) -> None:
            for name in KERNELS:
                ends = (p.inner, p.width) if name == "down" else (p.width, p.inner)
                kernel = self.add_weight(shape=(p.experts, *ends), initializer="glorot_uniform", name=name)
                setattr(self, name, kernel)

        def call(self, x: Any) -> Any:
            gate = tf.einsum("btd,edf->btef", x, self.gate)
            hidden = tf.nn.silu(gate) * tf.einsum("btd,edf->btef", x, self.up)
            return tf.einsum("btef,efd->bted", hidden, self.down)

    class Combine(tf.keras.layers.Layer):
        """The weighted sum over experts: (batch, steps, width)."""

        def call(self, found: Any, shares: Any) -> Any:
            return tf.einsum("bte,bted->btd", shares, found)

    states = keras.Input(batch_shape=(p.batch, p.steps, p.width), name="states")
    x = keras.RMSNormalization(epsilon=EPSILON, name="norm")(states)
    shares = Choose(name="choose")(keras.Dense(p.experts, use_bias=False, name="router")(x))
    x = Combine(name="combine")(Experts(name="experts")(x), shares)
    return tf.keras.Model(states, keras.Add(name="add")([states, x]))


def build_torch(p: Any) -> Any:
    """The block with scattered gates and bmm over all experts."""
    import torch
    from torch import nn

    class Add(nn.Module):
        """A sum, as a layer of its own so that it has a name."""

        def forward(self, a: Any, b: Any) -> Any:
            return a + b

    class Choose(nn.Module):
        """Scores (tokens, experts) -> the largest shares at their experts, 0 at all others, the same shape."""

        def forward(self, scores: Any) -> Any:
            shares = torch.softmax(scores, dim=-1)
            top, places = torch.topk(shares, p.chosen, dim=-1)
            top = top / top.sum(dim=-1, keepdim=True)
            return torch.zeros_like(shares).scatter(-1, places, top)

    class Experts(nn.Module):
        """Every expert on every token: (tokens, width) -> (experts, tokens, width)."""

        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Parameter(torch.zeros(p.experts, p.width, p.inner))
            self.up = nn.Parameter(torch.zeros(p.experts, p.width, p.inner))
            self.down = nn.Parameter(torch.zeros(p.experts, p.inner, p.width))

        def forward(self, x: Any) -> Any:
            x = x.expand(p.experts, -1, -1)
            hidden = nn.functional.silu(torch.bmm(x, self.gate)) * torch.bmm(x, self.up)
            return torch.bmm(hidden, self.down)

    class Combine(nn.Module):
        """The weighted sum over experts: (tokens, width)."""

        def forward(self, found: Any, shares: Any) -> Any:
            return torch.einsum("te,etd->td", shares, found)

    class Moe(nn.Module):
        """Norm, router, experts, sum."""

        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.RMSNorm(p.width, eps=EPSILON)
            self.router = nn.Linear(p.width, p.experts, bias=False)
            self.choose = Choose()
            self.experts = Experts()
            self.combine = Combine()
            self.add = Add()

        def forward(self, states: Any) -> Any:
            x = self.norm(states).view(-1, p.width)
            found = self.combine(self.experts(x), self.choose(self.router(x)))
            return self.add(states, found.view(states.shape))

    return Moe()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import numpy
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))

    put(torch_model.norm.weight, tf_model.get_layer("norm").get_weights()[0])
    put(torch_model.router.weight, tf_model.get_layer("router").get_weights()[0].T)
    for name in KERNELS:
        put(getattr(torch_model.experts, name), getattr(tf_model.get_layer("experts"), name).numpy())
