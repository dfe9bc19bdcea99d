"""Weights from a Keras layer to a PyTorch module: the orders in which either framework keeps them."""

from __future__ import annotations

from typing import Any


def put(parameter: Any, array: Any) -> None:
    """Give a parameter or buffer these values. Raises ValueError if the shapes differ."""
    import numpy
    import torch

    if tuple(parameter.shape) != array.shape:
        raise ValueError(f"weights of {array.shape} for a parameter of {tuple(parameter.shape)}")
    parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))


def turned(kernel: Any) -> Any:
    """(*k, in, out), or (*k, out, in) of a transposed convolution, with its last two axes first and the other way round."""
    return kernel.transpose(-1, -2, *range(kernel.ndim - 2))


def channelwise(kernel: Any) -> Any:
    """A depthwise kernel (*k, channels, multiplier) as (channels * multiplier, 1, *k)."""
    found = kernel.transpose(-2, -1, *range(kernel.ndim - 2))
    return found.reshape(-1, 1, *found.shape[2:])


def product(layer: Any, module: Any) -> None:
    """A dense layer or a convolution, transposed or not: kernel and, where there is one, bias."""
    kernel, *bias = layer.get_weights()
    put(module.weight, turned(kernel))
    for array in bias:
        put(module.bias, array)


def depthwise(layer: Any, module: Any) -> None:
    """A depthwise convolution."""
    kernel, *bias = layer.get_weights()
    put(module.weight, channelwise(kernel))
    for array in bias:
        put(module.bias, array)


def separable(layer: Any, module: Any) -> None:
    """A depthwise and a pointwise convolution; the bias is the second one's."""
    first, second, bias = layer.get_weights()
    put(module[0].weight, channelwise(first))
    put(module[1].weight, turned(second))
    put(module[1].bias, bias)


def norm(layer: Any, module: Any) -> None:
    """Scale, shift and running statistics, whichever the layer has."""
    names = {"gamma": "weight", "scale": "weight", "beta": "bias", "moving_mean": "running_mean"}
    names["moving_variance"] = "running_var"
    for variable in layer.weights:
        put(getattr(module, names[variable.path.rpartition("/")[2]]), variable.numpy())


def _cells(layer: Any) -> list[tuple[Any, str]]:
    """Recurrent layers in PyTorch's order with the ends of their parameters' names: ``_l0``, ``_l0_reverse``, ``_l1``."""
    found: list[tuple[Any, str]] = []
    for level, one in enumerate(getattr(layer, "layers", [layer])):
        if hasattr(one, "forward_layer"):
            found += [(one.forward_layer, f"_l{level}"), (one.backward_layer, f"_l{level}_reverse")]
        else:
            found.append((one, f"_l{level}"))
    return found


GATES = {1: (0,), 3: (1, 0, 2), 4: (0, 1, 2, 3)}
"""Number of gates -> Keras' place of each of PyTorch's gates: a GRU's z, r, h are r, z, n there."""


def _reordered(array: Any, units: int) -> Any:
    import numpy

    gates = numpy.split(array, array.shape[-1] // units, axis=-1)
    return numpy.concatenate([gates[i] for i in GATES[len(gates)]], axis=-1)


def recurrent(layer: Any, module: Any) -> None:
    """SimpleRNN, GRU or LSTM, levels in a Sequential, Bidirectional or not."""
    for one, end in _cells(layer):
        cell(one, module, end)


def cell(layer: Any, module: Any, end: str = "") -> None:
    """One cell, ``end`` the end of its parameters' names: a second bias that Keras does not have is 0."""
    kernel, hidden, *biases = (_reordered(w, layer.units) for w in layer.get_weights())
    put(getattr(module, "weight_ih" + end), kernel.T)
    put(getattr(module, "weight_hh" + end), hidden.T)
    for array in biases:
        first, second = array if array.ndim == 2 else (array, 0 * array)
        put(getattr(module, "bias_ih" + end), first)
        put(getattr(module, "bias_hh" + end), second)


def of_kind(layer: Any, module: Any) -> None:
    """Any dense layer, convolution or norm, told apart by its variables' names and its class."""
    from keras import layers

    names = {variable.path.rpartition("/")[2] for variable in layer.weights}
    if "kernel" not in names:
        norm(layer, module)
    elif isinstance(layer, layers.DepthwiseConv1D | layers.DepthwiseConv2D):
        depthwise(layer, module)
    else:
        product(layer, module)


def by_name(layers: Any, module: Any) -> None:
    """Every layer with weights to the child of ``module`` that has its name."""
    for layer in layers:
        if layer.weights:
            of_kind(layer, getattr(module, layer.name))
