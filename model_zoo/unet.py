"""U-Net with padded convolutions: four levels down by max pools, four up by transposed convolutions, joined across.

Image (1, 256, 256, 3) -> 64, 128, 256, 512, 1024 filters and back -> a map of logits (1, 256, 256, 2).

How the frameworks differ here
* A transposed convolution 2x2 of stride 2 multiplies each input pixel with the whole kernel, four output pixels of it, and
  no output pixel twice: as many products as a 1x1 convolution with four times the filters.  TensorFlow calls it
  Conv2DBackpropInput; counters that read the output's shape as a convolution's come to four times as much.
* Keras stores its kernel as (rows, columns, out, in), PyTorch as (in, out, rows, columns).
* Ronneberger et al. 2015 do not pad and crop before they join, from 572 down to 388 pixels; this is the padded form that
  most code has, with no batch norm, as in the paper.
"""

from typing import Any, List, Tuple

from reconcile.model_zoo.pair import Input, Layer, Pair

LEVELS = 4


def layers() -> Tuple[Layer, ...]:
    """One row per layer; a relu belongs to the convolution before it."""

    def pair(name: str) -> List[Layer]:
        return [Layer(name + end, name + end, (name + end, name + end + "_relu")) for end in ("_conv1", "_conv2")]

    found: List[Layer] = []
    for level in range(LEVELS):
        found += pair(f"down{level}") + [Layer(f"down{level}_pool", f"down{level}_pool", f"down{level}_pool")]
    found += pair("bottom")
    for level in reversed(range(LEVELS)):
        found += [Layer(f"up{level}_up", f"up{level}_up", f"up{level}_up")] + pair(f"up{level}")
    return tuple(found) + (Layer("logits", "logits", "logits"),)


PAIR = Pair(
    name="unet",
    params={"batch": 1, "size": 256, "channels": 3, "filters": 64, "classes": 2},
    layers=layers(),
    notes=(
        "The padded form of Ronneberger et al. 2015 (arXiv:1505.04597), untrained; size must be a multiple of 16.",
        "A transposed convolution multiplies each input pixel with the whole kernel: its work goes by its input.",
    ),
)

PROOF = {"size": "32", "filters": "4"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> List[Input]:
    """Images, channels last: (batch, size, size, channels)."""
    return [Input("image", (p.batch, p.size, p.size, p.channels))]


def build_keras(p: Any, keras: Any) -> Any:
    """The Keras model."""
    layers = keras.layers

    def twice(x: Any, filters: int, name: str) -> Any:
        for end in ("_conv1", "_conv2"):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu", name=name + end)(x)
        return x

    x = start = layers.Input(batch_shape=(p.batch, p.size, p.size, p.channels), name="image")
    across = []
    for level in range(LEVELS):
        x = twice(x, p.filters * 2**level, f"down{level}")
        across.append(x)
        x = layers.MaxPooling2D(2, name=f"down{level}_pool")(x)
    x = twice(x, p.filters * 2**LEVELS, "bottom")
    for level in reversed(range(LEVELS)):
        x = layers.Conv2DTranspose(p.filters * 2**level, 2, strides=2, name=f"up{level}_up")(x)
        x = layers.Concatenate(name=f"up{level}_join")([across[level], x])
        x = twice(x, p.filters * 2**level, f"up{level}")
    x = layers.Conv2D(p.classes, 1, name="logits")(x)
    return keras.Model(start, x)


def build_torch(p: Any) -> Any:
    """The PyTorch module; it takes and gives the image channels last."""
    import torch

    class UNet(torch.nn.Module):
        """Same layers, same names."""

        def __init__(self) -> None:
            super().__init__()
            width = p.channels
            for level in range(LEVELS):
                filters = p.filters * 2**level
                self._pair(f"down{level}", width, filters)
                self.add_module(f"down{level}_pool", torch.nn.MaxPool2d(2))
                width = filters
            self._pair("bottom", width, 2 * width)
            for level in reversed(range(LEVELS)):
                filters = p.filters * 2**level
                self.add_module(f"up{level}_up", torch.nn.ConvTranspose2d(2 * filters, filters, 2, stride=2))
                self._pair(f"up{level}", 2 * filters, filters)
            self.logits = torch.nn.Conv2d(p.filters, p.classes, 1)

        def _pair(self, name: str, width: int, filters: int) -> None:
            for end, channels in (("_conv1", width), ("_conv2", filters)):
                self.add_module(name + end, torch.nn.Conv2d(channels, filters, 3, padding=1))
                self.add_module(name + end + "_relu", torch.nn.ReLU())

        def _twice(self, x: Any, name: str) -> Any:
            for end in ("_conv1", "_conv2"):
                x = getattr(self, name + end + "_relu")(getattr(self, name + end)(x))
            return x

        def forward(self, x: Any) -> Any:
            x = x.permute(0, 3, 1, 2)
            across = []
            for level in range(LEVELS):
                x = self._twice(x, f"down{level}")
                across.append(x)
                x = getattr(self, f"down{level}_pool")(x)
            x = self._twice(x, "bottom")
            for level in reversed(range(LEVELS)):
                x = getattr(self, f"up{level}_up")(x)
                x = self._twice(torch.cat([across[level], x], 1), f"up{level}")
            return self.logits(x).permute(0, 2, 3, 1)

    return UNet()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    import torch

    for layer in tf_model.layers:
        weights = [torch.as_tensor(array) for array in layer.get_weights()]
        if weights:  # (rows, columns, in, out), transposed convolutions (rows, columns, out, in): one order for both
            module = getattr(torch_model, layer.name)
            module.weight.data.copy_(weights[0].permute(3, 2, 0, 1))
            module.bias.data.copy_(weights[1])
