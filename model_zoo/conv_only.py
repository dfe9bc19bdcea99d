"""The convolution of gru_demo alone: with it, the post says, TensorFlow's and PyTorch's counters agree. They do not.

Conv2D(32, (4, 4), stride (1, 2), relu, channels first) on (1, 1, 100, 256).

How the frameworks differ here
* They do not: 32 x 97 x 127 outputs of 16 products each are 6,307,328 multiply-accumulates, 12,614,656 FLOPs, in both.
* The post's counters: tf.profiler on the session graph says 13,061,089, for it counts the bias (394,208) and, in the
  graph, the initialiser of the kernel (1,024 and the arithmetic of its bounds) and the random input (51,200) too; thop
  x 2 says 13,403,072, for its version of that day counts the bias as a MAC, which x 2 doubles (788,416).
"""

from typing import Any, List

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

PAIR = Pair(
    name="conv_only",
    params={"batch": 1, "frames": 100, "bins": 256, "filters": 32},
    layers=(Layer("conv", tf="conv", torch=("conv", "relu")),),
    notes=(
        "The post's two figures differ though the work is equal: the bias is counted as one operation by tf.profiler, as "
        "two by thop x 2, and the session graph holds the kernel's initialiser and the random input.",
    ),
    published=(
        Published("13,061,089", "tf.profiler, TF 1.12.0 and 2.3.1, session graph", "the post"),
        Published("13,403,072", "thop 0.0.31 x 2, torch 1.10.1", "the post"),
    ),
)

KERNEL = 4
STRIDE = (1, 2)


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
    return keras.Model(start, x)


def build_tf_session(p: Any) -> Any:
    """The network as the post built it under TensorFlow 1: the input is a random tensor, its making in the graph."""
    import tensorflow as tf

    v1 = getattr(tf.compat, "v1", tf)
    layers = v1.keras.layers
    x = start = layers.Input(tensor=v1.keras.backend.random_normal((p.batch, 1, p.frames, p.bins)), name="spectrogram")
    x = layers.Conv2D(
        p.filters, (KERNEL, KERNEL), strides=STRIDE, activation="relu", data_format="channels_first", name="conv"
    )(x)
    return v1.keras.Model(start, x)


def build_torch(p: Any) -> Any:
    """The PyTorch module."""
    import torch

    class ConvOnly(torch.nn.Module):
        """Same layers, same names."""

        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(1, p.filters, KERNEL, stride=STRIDE)
            self.relu = torch.nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.conv(x))

    return ConvOnly()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import torch

    kernel, bias = tf_model.get_layer("conv").get_weights()
    torch_model.conv.weight.data.copy_(torch.as_tensor(kernel.transpose(3, 2, 0, 1).copy()))
    torch_model.conv.bias.data.copy_(torch.as_tensor(bias))
