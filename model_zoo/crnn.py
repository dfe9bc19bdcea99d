"""A CRNN that reads a line of text: seven convolutions, two bidirectional GRUs, a character per column.

Grey image (1, 32, 100, 1) -> 25 columns of 512 -> two bidirectional GRUs of 256 -> logits (1, 25, 37).

How the frameworks differ here
* Keras' Bidirectional runs two GRU layers and joins their outputs, one layer of it per level; one nn.GRU of PyTorch holds
  both directions and both levels.
* Keras forms the new state as z*h + (1 - z)*n (three products), PyTorch as n + z*(h - n) (two); gates are ordered z, r, h in
  Keras and r, z, n in PyTorch.
* The last convolution, 2x2, is not padded; all others are, evenly, so Keras' "same" and PyTorch's padding=1 agree.
* Shi et al. 2017 have LSTMs and an image padded at the sides of its late pools; here both late pools halve the height alone.
"""

from typing import Any, List, NamedTuple, Tuple

from reconcile.model_zoo.pair import Input, Layer, Pair

EPSILON = 1e-3


class Conv(NamedTuple):
    """A convolution of the stack: filters, kernel, whether a batch norm follows, and the pool (rows, columns) or (1, 1)."""

    name: str
    filters: int
    kernel: int
    norm: bool
    pool: Tuple[int, int]


CONVS = (
    Conv("conv1", 64, 3, False, (2, 2)),
    Conv("conv2", 128, 3, False, (2, 2)),
    Conv("conv3", 256, 3, True, (1, 1)),
    Conv("conv4", 256, 3, False, (2, 1)),
    Conv("conv5", 512, 3, True, (1, 1)),
    Conv("conv6", 512, 3, False, (2, 1)),
    Conv("conv7", 512, 2, True, (1, 1)),
)


def layers() -> Tuple[Layer, ...]:
    """One row per layer; a relu belongs to the convolution before it."""
    found: List[Layer] = []
    for conv in CONVS:
        name = conv.name
        found.append(Layer(name, (name, name + "_relu"), (name, name + "_relu")))
        if conv.norm:
            found.append(Layer(name + "_bn", name + "_bn", name + "_bn"))
        if conv.pool != (1, 1):
            found.append(Layer(name + "_pool", name + "_pool", name + "_pool"))
    return tuple(found) + (Layer("gru", ("gru_1", "gru_2"), "gru"), Layer("dense", "dense", "dense"))


PAIR = Pair(
    name="crnn",
    params={"batch": 1, "rows": 32, "columns": 100, "scale": 1, "units": 256, "classes": 37},
    layers=layers(),
    notes=(
        "The network of Shi et al. 2017 (arXiv:1507.05717) with GRUs in place of its LSTMs, untrained.",
        "Keras forms the new state as z*h + (1 - z)*n, PyTorch as n + z*(h - n): one product more per gate step in TensorFlow.",
        "scale divides the filters of every convolution.",
    ),
)

PROOF = {"columns": "20", "scale": "16", "units": "6", "classes": "5"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def size(p: Any) -> Tuple[int, int]:
    """Rows and columns of the last convolution's output."""
    rows, columns = int(p.rows), int(p.columns)
    for conv in CONVS:
        rows, columns = rows // conv.pool[0], columns // conv.pool[1]
    return rows - 1, columns - 1


def inputs(p: Any) -> List[Input]:
    """Grey images, channels last: (batch, rows, columns, 1)."""
    return [Input("image", (p.batch, p.rows, p.columns, 1))]


def build_keras(p: Any, keras: Any) -> Any:
    """The Keras model."""
    layers = keras.layers
    x = start = layers.Input(batch_shape=(p.batch, p.rows, p.columns, 1), name="image")
    for conv in CONVS:
        padding = "same" if conv.kernel == 3 else "valid"
        x = layers.Conv2D(conv.filters // p.scale, conv.kernel, padding=padding, name=conv.name)(x)
        if conv.norm:
            x = layers.BatchNormalization(epsilon=EPSILON, name=conv.name + "_bn")(x)
        x = layers.ReLU(name=conv.name + "_relu")(x)
        if conv.pool != (1, 1):
            x = layers.MaxPooling2D(conv.pool, name=conv.name + "_pool")(x)
    rows, columns = size(p)
    x = layers.Permute((2, 1, 3), name="columns_first")(x)
    x = layers.Reshape((columns, rows * (CONVS[-1].filters // p.scale)), name="flatten")(x)
    for name in ("gru_1", "gru_2"):
        x = layers.Bidirectional(layers.GRU(p.units, return_sequences=True), name=name)(x)
    x = layers.Dense(p.classes, name="dense")(x)
    return keras.Model(start, x)


def build_torch(p: Any) -> Any:
    """The PyTorch module; it takes the image channels last."""
    import torch

    class Crnn(torch.nn.Module):
        """Same layers, same names; both GRU levels in one module."""

        def __init__(self) -> None:
            super().__init__()
            width = 1
            for conv in CONVS:
                filters = conv.filters // p.scale
                padding = 1 if conv.kernel == 3 else 0
                self.add_module(conv.name, torch.nn.Conv2d(width, filters, conv.kernel, padding=padding))
                if conv.norm:
                    self.add_module(conv.name + "_bn", torch.nn.BatchNorm2d(filters, eps=EPSILON))
                self.add_module(conv.name + "_relu", torch.nn.ReLU())
                if conv.pool != (1, 1):
                    self.add_module(conv.name + "_pool", torch.nn.MaxPool2d(conv.pool))
                width = filters
            self.gru = torch.nn.GRU(size(p)[0] * width, p.units, num_layers=2, bidirectional=True, batch_first=True)
            self.dense = torch.nn.Linear(2 * p.units, p.classes)

        def forward(self, x: Any) -> Any:
            x = x.permute(0, 3, 1, 2)
            for conv in CONVS:
                x = getattr(self, conv.name)(x)
                if conv.norm:
                    x = getattr(self, conv.name + "_bn")(x)
                x = getattr(self, conv.name + "_relu")(x)
                if conv.pool != (1, 1):
                    x = getattr(self, conv.name + "_pool")(x)
            x, _ = self.gru(x.permute(0, 3, 2, 1).flatten(2))
            return self.dense(x)

    return Crnn()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import numpy
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))

    for conv in CONVS:
        kernel, bias = tf_model.get_layer(conv.name).get_weights()
        put(getattr(torch_model, conv.name).weight, kernel.transpose(3, 2, 0, 1))
        put(getattr(torch_model, conv.name).bias, bias)
        if conv.norm:
            norm = getattr(torch_model, conv.name + "_bn")
            held = tf_model.get_layer(conv.name + "_bn").get_weights()
            for parameter, array in zip((norm.weight, norm.bias, norm.running_mean, norm.running_var), held):
                put(parameter, array)
    for level in (0, 1):
        weights = tf_model.get_layer(f"gru_{level + 1}").get_weights()  # kernel, recurrent, biases: forward, backward
        for direction, end in enumerate(("", "_reverse")):
            kernel, recurrent, biases = weights[3 * direction : 3 * direction + 3]
            put(getattr(torch_model.gru, f"weight_ih_l{level}{end}"), _reorder(kernel).T)
            put(getattr(torch_model.gru, f"weight_hh_l{level}{end}"), _reorder(recurrent).T)
            put(getattr(torch_model.gru, f"bias_ih_l{level}{end}"), _reorder(biases[:1])[0])
            put(getattr(torch_model.gru, f"bias_hh_l{level}{end}"), _reorder(biases[1:])[0])
    kernel, bias = tf_model.get_layer("dense").get_weights()
    put(torch_model.dense.weight, kernel.T)
    put(torch_model.dense.bias, bias)


def _reorder(gates: Any) -> Any:
    """Keras' gate order z, r, h to PyTorch's r, z, n, along the last axis."""
    import numpy

    z, r, h = numpy.split(gates, 3, axis=-1)
    return numpy.concatenate([r, z, h], axis=-1)
