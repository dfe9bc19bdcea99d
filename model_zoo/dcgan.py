"""The DCGAN generator: noise to an image by five transposed convolutions 4x4, batch norm and relu between, tanh at the end.

(1, 100) -> 4 x 4 x 512 -> 8 x 8 x 256 -> 16 x 16 x 128 -> 32 x 32 x 64 -> image (1, 64, 64, 3).

How the frameworks differ here
* TensorFlow has no op for a transposed convolution: it runs Conv2DBackpropInput, the gradient of a convolution.  PyTorch's
  is a convolution with a flag.
* The work of a transposed convolution goes by its input: each input element is multiplied by the whole kernel.  A counter
  that goes by the output, or by the output over the stride squared, finds something else wherever these do not agree: the
  first layer makes 16 pixels of one at stride 1.
* Keras' "same" at kernel 4 and stride 2 takes one row away on each side, as PyTorch's padding=1 does.
* Radford et al. start from 1024 channels; the generator here starts from 512, as PyTorch's example of it does.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import weights
from reconcile.model_zoo.pair import Input, Layer, Pair

WIDTHS = (8, 4, 2, 1)
"""Channels behind each transposed convolution but the last, in units of ``filters``."""

EPSILON = 1e-5

NAMES = tuple(f"up{index}" for index in range(len(WIDTHS)))


def layers() -> tuple[Layer, ...]:
    """One row per layer."""
    parts = [name + part for name in NAMES for part in ("", "_bn", "_relu")]
    return tuple(Layer(name, name, name) for name in [*parts, "image", "tanh"])


PAIR = Pair(
    name="dcgan",
    params={"batch": 1, "noise": 100, "filters": 64, "channels": 3},
    layers=layers(),
    notes=(
        "A transposed convolution's work goes by its input; counters that go by its output count it too high.",
        "The generator of Radford et al. 2015 (arXiv:1511.06434) at half its width, as PyTorch's example has it, untrained.",
    ),
)

PROOF = {"noise": "6", "filters": "2"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Noise: (batch, noise)."""
    return [Input("z", (p.batch, p.noise))]


def build_keras(p: Any, keras: Any) -> Any:
    """The Keras model."""
    layers = keras.layers
    start = layers.Input(batch_shape=(p.batch, p.noise), name="z")
    x = layers.Reshape((1, 1, p.noise), name="pixel")(start)
    for index, (name, width) in enumerate(zip(NAMES, WIDTHS, strict=True)):
        stride, padding = (2, "same") if index else (1, "valid")
        up = layers.Conv2DTranspose(width * p.filters, 4, stride, padding, use_bias=False, name=name)
        x = layers.BatchNormalization(epsilon=EPSILON, name=name + "_bn")(up(x))
        x = layers.ReLU(name=name + "_relu")(x)
    x = layers.Conv2DTranspose(p.channels, 4, 2, "same", use_bias=False, name="image")(x)
    return keras.Model(start, layers.Activation("tanh", name="tanh")(x))


def build_torch(p: Any) -> Any:
    """The PyTorch module; it gives the image channels last."""
    import torch
    from torch import nn

    class Generator(nn.Module):
        """Same layers, same names."""

        def __init__(self) -> None:
            super().__init__()
            before = p.noise
            for index, (name, width) in enumerate(zip(NAMES, WIDTHS, strict=True)):
                stride, padding = (2, 1) if index else (1, 0)
                up = nn.ConvTranspose2d(before, width * p.filters, 4, stride, padding, bias=False)
                self.add_module(name, up)
                self.add_module(name + "_bn", nn.BatchNorm2d(width * p.filters, eps=EPSILON))
                self.add_module(name + "_relu", nn.ReLU())
                before = width * p.filters
            self.image = nn.ConvTranspose2d(before, p.channels, 4, 2, 1, bias=False)
            self.tanh = nn.Tanh()

        def forward(self, z: torch.Tensor) -> torch.Tensor:
            x = z[:, :, None, None]
            for name in NAMES:
                for part in ("", "_bn", "_relu"):
                    x = getattr(self, name + part)(x)
            return self.tanh(self.image(x)).permute(0, 2, 3, 1)

    return Generator()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    weights.by_name(tf_model.layers, torch_model)
