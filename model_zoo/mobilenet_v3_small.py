"""MobileNetV3-Small as keras.applications has it: 11 inverted residual blocks, most with squeeze and excite, hard swish.

conv 3x3/2 -> 11 blocks -> conv 1x1 (576) -> average pool -> conv 1x1 (1024) -> conv 1x1 (classes) -> softmax
on (1, 224, 224, 3).

How the frameworks differ here
* Keras' model scales the pixels itself, x / 127.5 - 1, in a layer; torchvision leaves that to the data loader.  The
  PyTorch side here has a module for it.
* Keras pads where it strides as TensorFlow's "same" does, more below and to the right; torchvision pads all around.  The
  PyTorch side here pads as Keras does, with a layer of its own.
* Keras' hard sigmoid is relu6(x + 3) * (1/6), and its sum and its product belong to no layer; its hard swish is
  x * clip(x / 6 + 0.5, 0, 1).  PyTorch has one op for each, with a division.
* Keras' dense layers of the head are convolutions 1x1 on an image of one pixel; torchvision's are nn.Linear.  As many
  products; the PyTorch side here has convolutions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reconcile.model_zoo.bricks import weights
from reconcile.model_zoo.pair import Input, Layer, Pair, Published

GROUPS = (
    (16, 16, 3, 2, True, False),
    (72, 24, 3, 2, False, False),
    (88, 24, 3, 1, False, False),
    (96, 40, 5, 2, True, True),
    (240, 40, 5, 1, True, True),
    (240, 40, 5, 1, True, True),
    (120, 48, 5, 1, True, True),
    (144, 48, 5, 1, True, True),
    (288, 96, 5, 2, True, True),
    (576, 96, 5, 1, True, True),
    (576, 96, 5, 1, True, True),
)
"""Expanded width, filters, kernel, stride, squeeze and excite, hard swish: table 2 of the paper."""

LAST, HEAD = 576, 1024
"""Filters of the last two convolutions before the classes."""

EPSILON = 1e-3


class Block(NamedTuple):
    """One inverted residual block: ``name`` is the prefix of its layers in Keras, ``squeezed`` 0 for none."""

    name: str
    width: int
    expanded: int
    filters: int
    kernel: int
    stride: int
    squeezed: int
    hard: bool

    @property
    def expands(self) -> bool:
        """The first block does not."""
        return self.name != "expanded_conv_"

    @property
    def residual(self) -> bool:
        """Whether its input is added to its output."""
        return self.stride == 1 and self.width == self.filters


def eighth(value: float) -> int:
    """The nearest multiple of 8, not more than a tenth below: how the family rounds its widths."""
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


def blocks() -> list[Block]:
    """Every block in order."""
    found: list[Block] = []
    width = 16
    for expanded, filters, kernel, stride, squeeze, hard in GROUPS:
        name = f"expanded_conv_{len(found)}_" if found else "expanded_conv_"
        squeezed = eighth(expanded / 4) if squeeze else 0
        found.append(Block(name, width, expanded, filters, kernel, stride, squeezed, hard))
        width = filters
    return found


def parts(block: Block) -> list[str]:
    """The block's layers in order, without its prefix."""
    found = ["expand", "expand_bn", "expand_act"] if block.expands else []
    found += ["depthwise", "depthwise_bn", "depthwise_act"]
    if block.squeezed:
        found += ["squeeze_excite_" + end for end in ("avg_pool", "conv", "relu", "conv_1", "hard_sigmoid", "mul")]
    return found + ["project", "project_bn"] + (["add"] if block.residual else [])


def layers() -> tuple[Layer, ...]:
    """One row per layer. Keras numbers the activations it was given no name for, in the order of their making."""
    made = {"activation": 0, "re_lu": 0}

    def unnamed(name: str, kind: str) -> Layer:
        made[kind] += 1
        return Layer(name, kind if made[kind] == 1 else f"{kind}_{made[kind] - 1}", name)

    found = [Layer(name, name, name) for name in ("rescaling", "conv", "conv_bn")]
    found.append(unnamed("conv_act", "activation"))
    for block in blocks():
        for name in [block.name + part for part in parts(block)]:
            if name.endswith("_act"):
                found.append(unnamed(name, "activation" if block.hard else "re_lu"))
            elif name.endswith("hard_sigmoid"):
                found.append(unnamed(name, "re_lu"))
            else:
                found.append(Layer(name, name, name))
    found += [Layer("conv_1", "conv_1", "conv_1"), Layer("conv_1_bn", "conv_1_bn", "conv_1_bn")]
    found += [unnamed("conv_1_act", "activation"), Layer("avg_pool", "global_average_pooling2d", "avg_pool")]
    found += [Layer("conv_2", "conv_2", "conv_2"), unnamed("conv_2_act", "activation")]
    return (*found, Layer("logits", "logits", "logits"), Layer("predictions", "predictions", "predictions"))


PAIR = Pair(
    name="mobilenet_v3_small",
    params={"batch": 1, "size": 224, "classes": 1000},
    layers=layers(),
    notes=(
        "Keras scales the pixels inside the model and writes the hard sigmoid out in parts that belong to no layer; PyTorch "
        "has one op for it.",
        "Keras pads below and to the right where it strides, torchvision all around: as many products. The PyTorch side "
        "here pads as Keras.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published(
            "56M",
            "multiply-adds at width 1.0",
            "Howard et al. 2019, table 3, arXiv:1905.02244",
        ),
        Published(
            "0.057G",
            "operations in units of 1e9, under GFLOPS in the documentation",
            "torchvision, meta _ops of MobileNet_V3_Small_Weights.IMAGENET1K_V1",
        ),
        Published(
            "66M",
            "MACs of mobilenet_v3_small_1.0_224",
            "documentation of keras.applications.MobileNetV3Small",
        ),
    ),
)

PROOF = {"size": "32", "classes": "10"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Images, channels last: (batch, size, size, 3)."""
    return [Input("image", (p.batch, p.size, p.size, 3))]


def build_keras(p: Any, keras: Any) -> Any:
    """keras.applications.MobileNetV3Small, not trained."""
    image = keras.layers.Input(batch_shape=(p.batch, p.size, p.size, 3), name="image")
    return keras.applications.MobileNetV3Small(weights=None, input_tensor=image, classes=p.classes)


def build_torch(p: Any) -> Any:
    """The same network in PyTorch, every layer by its name in Keras; it takes the image channels last."""
    import torch
    from torch import nn

    def padding(side: int, kernel: int) -> nn.Module:
        """TensorFlow's "same" before a kernel of stride 2."""
        before = kernel // 2 - (side % 2 == 0)
        return nn.ZeroPad2d((before, kernel // 2, before, kernel // 2))

    class Rescale(nn.Module):
        """Pixels 0..255 to -1..1."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (1 / 127.5) - 1.0

    class Add(nn.Module):
        """The residual sum, as a layer of its own so that it has a name."""

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    class Multiply(nn.Module):
        """The excitation, as a layer of its own so that it has a name."""

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * y

    class MobileNetV3Small(nn.Module):
        """Every layer by its name in Keras."""

        def __init__(self) -> None:
            super().__init__()
            side = p.size
            self.rescaling = Rescale()
            self.conv_pad = padding(side, 3)
            self._conv("conv", "conv", 3, 16, 3, stride=2, hard=True)
            side = (side + 1) // 2
            for block in blocks():
                name, wide, kernel = block.name, block.expanded, block.kernel
                if block.expands:
                    self._conv(name + "expand", name + "expand", block.width, wide, 1, hard=block.hard)
                if block.stride == 2:
                    self.add_module(name + "pad", padding(side, kernel))
                    side = (side + 1) // 2
                inside = 0 if block.stride == 2 else kernel // 2
                depthwise = name + "depthwise"
                self._conv(depthwise, depthwise, wide, wide, kernel, block.stride, inside, wide, block.hard)
                if block.squeezed:
                    excite = name + "squeeze_excite_"
                    self.add_module(excite + "avg_pool", nn.AdaptiveAvgPool2d(1))
                    self.add_module(excite + "conv", nn.Conv2d(wide, block.squeezed, 1))
                    self.add_module(excite + "relu", nn.ReLU())
                    self.add_module(excite + "conv_1", nn.Conv2d(block.squeezed, wide, 1))
                    self.add_module(excite + "hard_sigmoid", nn.Hardsigmoid())
                    self.add_module(excite + "mul", Multiply())
                self._conv(name + "project", "", wide, block.filters, 1)
                if block.residual:
                    self.add_module(name + "add", Add())
            self._conv("conv_1", "conv_1", blocks()[-1].filters, LAST, 1, hard=True)
            self.avg_pool = nn.AdaptiveAvgPool2d(1)
            self.conv_2 = nn.Conv2d(LAST, HEAD, 1)
            self.conv_2_act = nn.Hardswish()
            self.logits = nn.Conv2d(HEAD, p.classes, 1)
            self.predictions = nn.Softmax(-1)

        def _conv(
            self,
            conv: str,
            act: str,
            width: int,
            filters: int,
            kernel: int,
            stride: int = 1,
            padding: int = 0,
            groups: int = 1,
            hard: bool = False,
        ) -> None:
            self.add_module(conv, nn.Conv2d(width, filters, kernel, stride, padding, groups=groups, bias=False))
            self.add_module(conv + "_bn", nn.BatchNorm2d(filters, eps=EPSILON))
            if act:
                self.add_module(act + "_act", nn.Hardswish() if hard else nn.ReLU())

        def _run(self, x: torch.Tensor, prefix: str, *names: str) -> torch.Tensor:
            for name in names:
                x = getattr(self, prefix + name)(x)
            return x

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self.rescaling(image).permute(0, 3, 1, 2)
            x = self._run(x, "conv", "_pad", "", "_bn", "_act")
            for block in blocks():
                start = x
                if block.expands:
                    x = self._run(x, block.name, "expand", "expand_bn", "expand_act")
                if block.stride == 2:
                    x = self._run(x, block.name, "pad")
                x = self._run(x, block.name, "depthwise", "depthwise_bn", "depthwise_act")
                if block.squeezed:
                    excite = block.name + "squeeze_excite_"
                    gate = self._run(x, excite, "avg_pool", "conv", "relu", "conv_1", "hard_sigmoid")
                    x = getattr(self, excite + "mul")(x, gate)
                x = self._run(x, block.name, "project", "project_bn")
                if block.residual:
                    x = getattr(self, block.name + "add")(x, start)
            x = self.avg_pool(self._run(x, "conv_1", "", "_bn", "_act"))
            x = self.logits(self.conv_2_act(self.conv_2(x)))
            return self.predictions(x.flatten(1))

    return MobileNetV3Small()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    weights.by_name(tf_model.layers, torch_model)
