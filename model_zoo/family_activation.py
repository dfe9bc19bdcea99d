"""Activations: the exact and the tanh GELU, SiLU, the relus, the elus, sigmoids, softmax and their kin.

Each branch is one function on (2, 5, 6).

How the frameworks differ here
* Keras writes many of these out (GELU, mish, the shrinks, the hard ones) where PyTorch has one operator each: the elementary
  operations differ, the values do not.
* Slopes and thresholds have other defaults in either framework; all are given here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, module, weights
from reconcile.model_zoo.bricks.net import branches, pair

SHAPE: Shape = (5, 6)


def function(name: str, tf: Callable[[Any, Any], Any], torch: Callable[[Any], Any]) -> Brick:
    """``tf(keras.activations, x)``, and the module that ``torch(nn)`` makes."""

    def make_tf(name: str, _shape: Shape) -> Any:
        import keras

        activations = keras.activations
        return keras.layers.Activation(lambda x: tf(activations, x), name=name)

    def make_torch(_shape: Shape) -> Any:
        import torch as framework

        return torch(framework.nn)

    return Brick(name, SHAPE, make_tf, make_torch)


def prelu(name: str) -> Brick:
    """A learned slope per channel."""

    def tf(name: str, shape: Shape) -> Any:
        import keras

        shared = list(range(1, len(shape))) or None
        return keras.layers.PReLU("glorot_uniform" if shared else "uniform", shared_axes=shared, name=name)

    def torch(shape: Shape) -> Any:
        import torch

        return torch.nn.PReLU(shape[-1])

    def copy(layer: Any, found: Any) -> None:
        weights.put(found.weight, layer.get_weights()[0].reshape(-1))

    return Brick(name, SHAPE, tf, torch, copy, channels_first=True)


BRICKS = (
    function("relu", lambda a, x: a.relu(x), lambda nn: nn.ReLU()),
    function("relu6", lambda a, x: a.relu6(x), lambda nn: nn.ReLU6()),
    function("leaky_relu", lambda a, x: a.leaky_relu(x, negative_slope=0.1), lambda nn: nn.LeakyReLU(0.1)),
    prelu("prelu"),
    function("elu", lambda a, x: a.elu(x), lambda nn: nn.ELU()),
    function("selu", lambda a, x: a.selu(x), lambda nn: nn.SELU()),
    function("celu", lambda a, x: a.celu(x), lambda nn: nn.CELU()),
    function("gelu", lambda a, x: a.gelu(x), lambda nn: nn.GELU()),
    function("gelu_tanh", lambda a, x: a.gelu(x, approximate=True), lambda nn: nn.GELU("tanh")),
    function("silu", lambda a, x: a.silu(x), lambda nn: nn.SiLU()),
    function("mish", lambda a, x: a.mish(x), lambda nn: nn.Mish()),
    function("sigmoid", lambda a, x: a.sigmoid(x), lambda nn: nn.Sigmoid()),
    function("log_sigmoid", lambda a, x: a.log_sigmoid(x), lambda nn: nn.LogSigmoid()),
    function("hard_sigmoid", lambda a, x: a.hard_sigmoid(x), lambda nn: nn.Hardsigmoid()),
    function("hard_swish", lambda a, x: a.hard_silu(x), lambda nn: nn.Hardswish()),
    function("tanh", lambda a, x: a.tanh(x), lambda nn: nn.Tanh()),
    function("hard_tanh", lambda a, x: a.hard_tanh(x), lambda nn: nn.Hardtanh()),
    function("tanh_shrink", lambda a, x: a.tanh_shrink(x), lambda nn: nn.Tanhshrink()),
    function("hard_shrink", lambda a, x: a.hard_shrink(x, threshold=0.5), lambda nn: nn.Hardshrink(0.5)),
    function("soft_shrink", lambda a, x: a.soft_shrink(x, threshold=0.5), lambda nn: nn.Softshrink(0.5)),
    function("softplus", lambda a, x: a.softplus(x), lambda nn: nn.Softplus()),
    function("softsign", lambda a, x: a.softsign(x), lambda nn: nn.Softsign()),
    function("softmax", lambda a, x: a.softmax(x), lambda nn: nn.Softmax(-1)),
    function("softmax_steps", lambda a, x: a.softmax(x, axis=1), lambda nn: nn.Softmax(1)),
    function("log_softmax", lambda a, x: a.log_softmax(x), lambda nn: nn.LogSoftmax(-1)),
    function("exponential", lambda a, x: a.exponential(x), lambda nn: module(lambda _self, x: x.exp())),
)

PAIR, inputs, build_keras, build_torch, copy_weights = pair(
    "family_activation",
    branches(BRICKS),
    notes=("Every function is a branch of its own and all outputs are returned; two samples.",),
)
