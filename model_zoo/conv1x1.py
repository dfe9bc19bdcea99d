"""One 1x1 convolution on one pixel of one channel, no bias: the smallest network that a profiler can be asked about.

Conv2D(1, (1, 1), no bias) -> Flatten on (1, 1, 1, 1): one product.  tf.profiler says 2.

How the frameworks differ here
* Nothing but the layout: Keras has channels last, PyTorch channels first; with one channel and one row, the output of
  Flatten is in the same order in both.
* The answer to "why 2 and not 1": the registered formula is 2 * elements of the output * kernel * channels, one multiply
  and one add for each product, the first add (to an accumulator that starts at 0) included.
"""

from typing import Any, List

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

PAIR = Pair(
    name="conv1x1",
    params={"batch": 1, "size": 1},
    layers=(Layer("conv", tf="conv", torch="conv"), Layer("flatten", tf="flatten", torch="flatten")),
    notes=(
        "One multiply-accumulate is 2 FLOPs: the product, and its addition to an accumulator that starts at 0. Under the "
        "convention textbook, whose first product starts the sum, it is 1.",
    ),
    published=(Published("2", "tf.profiler, TF 1.x, frozen graph: node conv/Conv2D", "a question on a forum"),),
)

PROOF = {"size": "5"}
"""Equivalence is shown here: one output number would be its own largest."""


def inputs(p: Any) -> List[Input]:
    """One image of one channel per sample, channels last: (batch, size, size, 1)."""
    return [Input("image", (p.batch, p.size, p.size, 1))]


def build_keras(p: Any, keras: Any) -> Any:
    """The Keras model."""
    layers = keras.layers
    x = start = layers.Input(batch_shape=(p.batch, p.size, p.size, 1), name="image")
    x = layers.Conv2D(1, (1, 1), use_bias=False, name="conv")(x)
    x = layers.Flatten(name="flatten")(x)
    return keras.Model(start, x)


def build_torch(p: Any) -> Any:
    """The PyTorch module; it takes the image as Keras does, channels last."""
    import torch

    class Conv1x1(torch.nn.Module):
        """Same layers, same names."""

        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 1, 1, bias=False)
            self.flatten = torch.nn.Flatten()

        def forward(self, x: Any) -> Any:
            return self.flatten(self.conv(x.permute(0, 3, 1, 2)))

    return Conv1x1()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import torch

    (kernel,) = tf_model.get_layer("conv").get_weights()
    torch_model.conv.weight.data.copy_(torch.as_tensor(kernel.transpose(3, 2, 0, 1).copy()))
