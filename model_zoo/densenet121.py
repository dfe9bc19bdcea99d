"""DenseNet-121 as keras.applications has it: four dense blocks of 6, 12, 24 and 16 layers, each adding 32 channels.

conv 7x7/2 -> max pool 3x3/2 -> dense blocks, halved between -> average pool -> dense(classes, softmax)
on (1, 224, 224, 3).

How the frameworks differ here
* Both norm and activate before they convolve, so a norm reads all channels joined so far: by the end of a block it does
  more elementwise work than its 3x3 convolution has outputs.
* Keras' batch norms have epsilon 1.001e-5, torchvision's 1e-5; both sides here have Keras'.
* Keras pads with zeros before the first convolution and before the max pool; PyTorch pads inside of them (the max pool
  with -inf, which is the same behind a relu).
* torchvision joins the list of a block's features anew in every layer, Keras joins two tensors; neither does arithmetic.
  The PyTorch side here joins as Keras does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.model_zoo.bricks import weights
from reconcile.model_zoo.pair import Input, Layer, Pair, Published

BLOCKS = (("conv2", 6), ("conv3", 12), ("conv4", 24), ("conv5", 16))
"""Name of a dense block in Keras and its layers: DenseNet-121 in table 1 of the paper."""

STEM, GROWTH = 64, 32
"""Filters of the first convolution; channels that each layer adds."""

EPSILON = 1.001e-5

PARTS = ("0_bn", "0_relu", "1_conv", "1_bn", "1_relu", "2_conv")
"""One layer of a dense block: norm, relu, 1x1 to four times the growth, norm, relu, 3x3."""


def stages() -> Iterator[tuple[str, list[tuple[str, int]], str, int]]:
    """Every dense block: its layers (prefix, channels read), its transition ('' for none), channels behind the block."""
    width = STEM
    for block, count in BLOCKS:
        inside = [(f"{block}_block{index + 1}_", width + index * GROWTH) for index in range(count)]
        width += count * GROWTH
        transition = "" if block == BLOCKS[-1][0] else f"pool{block[-1]}_"
        yield block, inside, transition, width
        width //= 2


def layer_names() -> list[str]:
    """Names of the layers that do work, in order; the same on either side."""
    found = ["conv1_conv", "conv1_bn", "conv1_relu", "pool1"]
    for _block, inside, transition, _width in stages():
        found += [name + part for name, _channels in inside for part in PARTS]
        if transition:
            found += [transition + part for part in ("bn", "relu", "conv", "pool")]
    return [*found, "bn", "relu", "avg_pool", "predictions"]


def layers() -> tuple[Layer, ...]:
    """One row per layer; the softmax belongs to the dense layer."""
    torch = {"predictions": ("predictions", "softmax")}
    return tuple(Layer(name, name, torch.get(name, name)) for name in layer_names())


PAIR = Pair(
    name="densenet121",
    params={"batch": 1, "size": 224, "classes": 1000},
    layers=layers(),
    notes=(
        "Norms and relus come before the convolutions and read every channel joined so far.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published(
            "2.834G",
            "operations in units of 1e9, under GFLOPS in the documentation",
            "torchvision, meta _ops of DenseNet121_Weights.IMAGENET1K_V1",
        ),
        Published(
            "2.87G",
            "GMACs at 224 x 224",
            "timm, results/benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv, densenet121",
        ),
        Published(
            "5.724G",
            "GFLOPs of the Caffe model at 224 x 224",
            "OpenVINO 2021.4 documentation, Open Model Zoo, densenet-121",
        ),
    ),
)

PROOF = {"size": "32", "classes": "10"}
"""Equivalence is shown here, where it takes a minute to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Images, channels last: (batch, size, size, 3)."""
    return [Input("image", (p.batch, p.size, p.size, 3))]


def build_keras(p: Any, keras: Any) -> Any:
    """keras.applications.DenseNet121, not trained."""
    image = keras.layers.Input(batch_shape=(p.batch, p.size, p.size, 3), name="image")
    return keras.applications.DenseNet121(weights=None, input_tensor=image, classes=p.classes)


def build_torch(p: Any) -> Any:
    """The same network in PyTorch, every layer by its name in Keras; it takes the image channels last."""
    import torch
    from torch import nn

    class DenseNet121(nn.Module):
        """Every layer by its name in Keras."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1_conv = nn.Conv2d(3, STEM, 7, 2, 3, bias=False)
            self._norm("conv1_", STEM)
            self.pool1 = nn.MaxPool2d(3, 2, padding=1)
            for _block, inside, transition, width in stages():
                for name, channels in inside:
                    self._norm(name + "0_", channels)
                    self.add_module(name + "1_conv", nn.Conv2d(channels, 4 * GROWTH, 1, bias=False))
                    self._norm(name + "1_", 4 * GROWTH)
                    self.add_module(name + "2_conv", nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False))
                if transition:
                    self._norm(transition, width)
                    self.add_module(transition + "conv", nn.Conv2d(width, width // 2, 1, bias=False))
                    self.add_module(transition + "pool", nn.AvgPool2d(2))
            self._norm("", width)
            self.avg_pool = nn.AdaptiveAvgPool2d(1)
            self.predictions = nn.Linear(width, p.classes)
            self.softmax = nn.Softmax(-1)

        def _norm(self, prefix: str, width: int) -> None:
            self.add_module(prefix + "bn", nn.BatchNorm2d(width, eps=EPSILON))
            self.add_module(prefix + "relu", nn.ReLU())

        def _run(self, x: torch.Tensor, prefix: str, *names: str) -> torch.Tensor:
            for name in names:
                x = getattr(self, prefix + name)(x)
            return x

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self.pool1(self._run(image.permute(0, 3, 1, 2), "conv1_", "conv", "bn", "relu"))
            for _block, inside, transition, _width in stages():
                for name, _channels in inside:
                    x = torch.cat([x, self._run(x, name, *PARTS)], 1)
                if transition:
                    x = self._run(x, transition, "bn", "relu", "conv", "pool")
            x = self.avg_pool(self._run(x, "", "bn", "relu"))
            return self.softmax(self.predictions(x.flatten(1)))

    return DenseNet121()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    weights.by_name(tf_model.layers, torch_model)
