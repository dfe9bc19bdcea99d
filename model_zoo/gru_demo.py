"""Conv2D -> reshape -> GRU -> Dense: the network of a widely read post that found TensorFlow and PyTorch far apart.

Conv2D(32, (4, 4), stride (1, 2), relu, channels first) -> GRU(96, reset_after) -> Dense(256, sigmoid) on (1, 1, 100, 256).

How the frameworks differ here
* The post's PyTorch side calls ``nn.GRU`` without ``batch_first``: its input (1, 97, 4064) is then read as ONE step of a
  batch of 97, where TensorFlow walks 97 steps of a batch of 1.  Both multiply the same matrices (97 x 3 x 96 x 4160 MACs),
  so every counter reports the same for both, and the two compute different things: the recurrence is gone.  This pair
  sets ``batch_first=True`` (the outputs then agree); ``--set batch_first=false`` gives the post's reading.
* Keras' GRU with ``reset_after`` has the two biases of PyTorch's; gates are ordered z, r, h in Keras and r, z, n in PyTorch.
* Keras forms the new state as z*h + (1 - z)*n (three products), PyTorch as n + z*(h - n) (two).
* A Keras layer that returns a sequence is followed by Dense on (batch, frames, units): a matrix product of all frames.
"""

from typing import Any, List

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

PAIR = Pair(
    name="gru_demo",
    params={
        "batch": 1,
        "frames": 100,
        "bins": 256,
        "filters": 32,
        "units": 96,
        "classes": 256,
        "batch_first": True,
    },
    layers=(
        Layer("conv", tf="conv", torch=("conv", "relu"), jax="conv"),
        Layer("gru", tf="gru", torch="gru", jax="gru"),
        Layer("dense", tf="dense", torch=("dense", "sigmoid"), jax="dense"),
    ),
    notes=(
        "The post's PyTorch side calls nn.GRU without batch_first, so its (1, 97, 4064) is read as one step of batch 97 "
        "instead of 97 steps of batch 1: the same multiply-adds, another computation. This pair sets batch_first=True; "
        "--set batch_first=false gives the post's reading.",
        "Keras forms the new state as z*h + (1 - z)*n, PyTorch as n + z*(h - n): one product more per gate step in TensorFlow.",
        "Gates are ordered z, r, h in Keras and r, z, n in PyTorch; both carry two biases (reset_after).",
    ),
    published=(
        Published("25,150,826", "tf.profiler, TF 1.12.0, session graph", "the post"),
        Published("22,752,165", "tf.profiler, TF 2.3.1, session graph", "the post"),
        Published("22,938,560", "thop x 2, torch 1.10.1", "the post"),
    ),
)

KERNEL = 4
STRIDE = (1, 2)


def steps(p: Any) -> int:
    """Time steps the GRU walks: rows of the convolution's output."""
    return int(p.frames) - KERNEL + 1


def inputs(p: Any) -> List[Input]:
    """One spectrogram per sample: (batch, 1, frames, bins)."""
    return [Input("spectrogram", (p.batch, 1, p.frames, p.bins))]


def build_keras(p: Any, keras: Any) -> Any:
    """The Keras model."""
    layers = keras.layers
    x = start = layers.Input(batch_shape=(p.batch, 1, p.frames, p.bins), name="spectrogram")
    x = layers.Conv2D(
        p.filters, (KERNEL, KERNEL), strides=STRIDE, activation="relu", data_format="channels_first", name="conv"
    )(x)
    x = layers.Permute((2, 1, 3), name="frames_first")(x)
    x = layers.Reshape((steps(p), -1), name="flatten")(x)
    x = layers.GRU(p.units, reset_after=True, return_sequences=True, name="gru")(x)
    x = layers.Dense(p.classes, activation="sigmoid", name="dense")(x)
    return keras.Model(start, x)


def build_tf_session(p: Any) -> Any:
    """The network as the post built it under TensorFlow 1: the input is a random tensor, the GRU is Keras' first one.

    That one's gates are hard sigmoids: (0.2 x + 0.5) cut off at 0 and 1.
    """
    import tensorflow as tf

    v1 = getattr(tf.compat, "v1", tf)
    layers = v1.keras.layers
    x = start = layers.Input(tensor=v1.keras.backend.random_normal((p.batch, 1, p.frames, p.bins)), name="spectrogram")
    x = layers.Conv2D(
        p.filters, (KERNEL, KERNEL), strides=STRIDE, activation="relu", data_format="channels_first", name="conv"
    )(x)
    x = layers.Reshape((steps(p), -1), name="flatten")(x)
    x = layers.GRU(p.units, reset_after=True, return_sequences=True, name="gru")(x)
    x = layers.Dense(p.classes, activation="sigmoid", name="dense")(x)
    return v1.keras.Model(start, x)


def build_torch(p: Any) -> Any:
    """The PyTorch module."""
    import torch

    class GruDemo(torch.nn.Module):
        """Same layers, same names."""

        def __init__(self) -> None:
            super().__init__()
            columns = (p.bins - KERNEL) // STRIDE[1] + 1
            self.conv = torch.nn.Conv2d(1, p.filters, KERNEL, stride=STRIDE)
            self.relu = torch.nn.ReLU()
            self.gru = torch.nn.GRU(p.filters * columns, p.units, batch_first=p.batch_first)
            self.dense = torch.nn.Linear(p.units, p.classes)
            self.sigmoid = torch.nn.Sigmoid()

        def forward(self, x: Any) -> Any:
            x = self.relu(self.conv(x))
            x = x.permute(0, 2, 1, 3).flatten(2)
            x, _ = self.gru(x)
            return self.sigmoid(self.dense(x))

    return GruDemo()


def build_jax(p: Any) -> Any:
    """The Flax module: linen's GRU has a bias for the product that the reset gate scales, as Keras' and PyTorch's have."""
    from flax import linen

    class Conv(linen.Module):
        """A convolution and a relu."""

        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.relu(linen.Conv(p.filters, (KERNEL, KERNEL), STRIDE, "VALID", name="conv")(x))

    class Dense(linen.Module):
        """A dense layer and a sigmoid."""

        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.sigmoid(linen.Dense(p.classes, name="dense")(x))

    class GruDemo(linen.Module):
        """Same layers, same names; Flax has the channels last."""

        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = Conv(name="conv")(x.transpose(0, 2, 3, 1))
            x = x.transpose(0, 1, 3, 2).reshape(p.batch, steps(p), -1)
            x = linen.RNN(linen.GRUCell(p.units, name="cell"), name="gru")(x)
            return Dense(name="dense")(x)

    return GruDemo()


def arrays_for(weights: Any, p: Any) -> Any:
    """The Flax module's weights: of its reset and update gates it has one bias, the sum of Keras' two."""
    found = {}
    for name in ("conv", "dense"):
        for part in ("kernel", "bias"):
            found[f"params.{name}.{name}.{part}"] = weights[f"{name}/{part}"]
    kernel, recurrent, biases = (weights["gru/gru_cell/" + part] for part in ("kernel", "recurrent_kernel", "bias"))
    for index, gate in enumerate("zrn"):
        of_gate = slice(index * p.units, (index + 1) * p.units)
        outer, inner = biases[0, of_gate], biases[1, of_gate]
        found[f"params.cell.i{gate}.kernel"] = kernel[:, of_gate]
        found[f"params.cell.h{gate}.kernel"] = recurrent[:, of_gate]
        found[f"params.cell.i{gate}.bias"] = outer if gate == "n" else outer + inner
        if gate == "n":
            found["params.cell.hn.bias"] = inner
    return found


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import numpy
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(numpy.ascontiguousarray(array)))

    kernel, bias = tf_model.get_layer("conv").get_weights()
    put(torch_model.conv.weight, kernel.transpose(3, 2, 0, 1))
    put(torch_model.conv.bias, bias)

    kernel, recurrent, biases = tf_model.get_layer("gru").get_weights()
    put(torch_model.gru.weight_ih_l0, _reorder(kernel).T)
    put(torch_model.gru.weight_hh_l0, _reorder(recurrent).T)
    put(torch_model.gru.bias_ih_l0, _reorder(biases[:1])[0])
    put(torch_model.gru.bias_hh_l0, _reorder(biases[1:])[0])

    kernel, bias = tf_model.get_layer("dense").get_weights()
    put(torch_model.dense.weight, kernel.T)
    put(torch_model.dense.bias, bias)


def _reorder(gates: Any) -> Any:
    """Keras' gate order z, r, h to PyTorch's r, z, n, along the last axis."""
    import numpy

    z, r, h = numpy.split(gates, 3, axis=-1)
    return numpy.concatenate([r, z, h], axis=-1)
