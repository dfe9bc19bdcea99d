"""EfficientNet-B0 as keras.applications has it: 16 inverted residual blocks with squeeze and excite and swish.

conv 3x3/2 -> 16 blocks -> conv 1x1 (1280) -> average pool -> dense(classes, softmax) on (1, 224, 224, 3).

How the frameworks differ here
* Keras' model scales and normalises the pixels itself: x / 255, then (x - mean) / max(sqrt(variance), 1e-7).  torchvision
  leaves that to the data loader.  The PyTorch side here has modules for it.
* Keras pads where it strides as TensorFlow's "same" does, more below and to the right; torchvision pads all around.  The
  PyTorch side here pads as Keras does, with a layer of its own.
* Keras squeezes to a vector and reshapes it to an image of one pixel; PyTorch's adaptive pool keeps the axes.
* Keras' swish is x * sigmoid(x) in two ops, PyTorch's SiLU one.
* Dropout and stochastic depth do nothing in inference; the PyTorch side leaves them out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reconcile.model_zoo.bricks import weights
from reconcile.model_zoo.pair import Input, Layer, Pair, Published

GROUPS = (
    (1, 16, 3, 1, 1),
    (6, 24, 3, 2, 2),
    (6, 40, 5, 2, 2),
    (6, 80, 3, 3, 2),
    (6, 112, 5, 3, 1),
    (6, 192, 5, 4, 2),
    (6, 320, 3, 1, 1),
)
"""Expansion, filters, kernel, blocks, stride of the first: table 1 of the paper."""

STEM, TOP = 32, 1280
"""Filters of the first and of the last convolution."""

EPSILON = 1e-3

WITHOUT_EFFECT = ("normalization/mean", "normalization/variance", "normalization/count")
"""Keras reads them once, when the layer is built; what is assigned to them afterwards has no effect."""


class Block(NamedTuple):
    """One inverted residual block: ``name`` is the prefix of its layers in Keras."""

    name: str
    width: int
    expanded: int
    filters: int
    kernel: int
    stride: int

    @property
    def squeezed(self) -> int:
        """Width between squeeze and excite: a quarter of the block's input."""
        return self.width // 4

    @property
    def expands(self) -> bool:
        """The first block does not."""
        return self.expanded != self.width

    @property
    def residual(self) -> bool:
        """Whether its input is added to its output."""
        return self.stride == 1 and self.width == self.filters


def blocks() -> list[Block]:
    """Every block in order: 1a, 2a, 2b, ..."""
    found: list[Block] = []
    width = STEM
    for group, (expansion, filters, kernel, count, stride) in enumerate(GROUPS, start=1):
        for index in range(count):
            name = f"block{group}{'abcd'[index]}_"
            found.append(Block(name, width, width * expansion, filters, kernel, stride if index == 0 else 1))
            width = filters
    return found


def parts(block: Block) -> list[str]:
    """The block's layers that do work, in order, without its prefix."""
    found = ["expand_conv", "expand_bn", "expand_activation"] if block.expands else []
    found += ["dwconv", "bn", "activation", "se_squeeze", "se_reduce", "se_expand", "se_excite"]
    return found + ["project_conv", "project_bn"] + (["add"] if block.residual else [])


def layers() -> tuple[Layer, ...]:
    """One row per layer; the activations of squeeze and excite, and the softmax, belong to the layer before them."""
    names = ["rescaling", "normalization", "stem_conv", "stem_bn", "stem_activation"]
    names += [block.name + part for block in blocks() for part in parts(block)]
    names += ["top_conv", "top_bn", "top_activation", "avg_pool", "predictions"]
    extra = {"predictions": ("predictions", "softmax")}
    extra.update({block.name + "se_reduce": (block.name + "se_reduce", block.name + "se_swish") for block in blocks()})
    extra.update({block.name + "se_expand": (block.name + "se_expand", block.name + "se_gate") for block in blocks()})
    return tuple(Layer(name, name, extra.get(name, name)) for name in names)


PAIR = Pair(
    name="efficientnet_b0",
    params={"batch": 1, "size": 224, "classes": 1000},
    layers=layers(),
    notes=(
        "Keras scales and normalises the pixels inside the model; the PyTorch side here does so too.",
        "Keras pads below and to the right where it strides, torchvision all around: as many products. The PyTorch side "
        "here pads as Keras.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published(
            "0.39B",
            "FLOPs at 224 x 224",
            "Tan and Le 2019, table 2, arXiv:1905.11946",
        ),
        Published(
            "0.386G",
            "operations in units of 1e9, under GFLOPS in the documentation",
            "torchvision, meta _ops of EfficientNet_B0_Weights.IMAGENET1K_V1",
        ),
    ),
)

PROOF = {"size": "32", "classes": "10"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Images, channels last: (batch, size, size, 3)."""
    return [Input("image", (p.batch, p.size, p.size, 3))]


def build_keras(p: Any, keras: Any) -> Any:
    """keras.applications.EfficientNetB0, not trained."""
    image = keras.layers.Input(batch_shape=(p.batch, p.size, p.size, 3), name="image")
    return keras.applications.EfficientNetB0(weights=None, input_tensor=image, classes=p.classes)


def build_torch(p: Any) -> Any:
    """The same network in PyTorch, every layer by its name in Keras; it takes the image channels last."""
    import torch
    from torch import nn

    def padding(side: int, kernel: int) -> nn.Module:
        """TensorFlow's "same" before a kernel of stride 2."""
        before = kernel // 2 - (side % 2 == 0)
        return nn.ZeroPad2d((before, kernel // 2, before, kernel // 2))

    class Rescale(nn.Module):
        """Pixels 0..255 to 0..1."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (1 / 255.0) + 0.0

    class Normalize(nn.Module):
        """By mean and variance per channel."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("variance", torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - self.mean) / torch.clamp(torch.sqrt(self.variance), min=1e-7)

    class Add(nn.Module):
        """The residual sum, as a layer of its own so that it has a name."""

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    class Multiply(nn.Module):
        """The excitation, as a layer of its own so that it has a name."""

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * y

    class EfficientNetB0(nn.Module):
        """Every layer by its name in Keras."""

        def __init__(self) -> None:
            super().__init__()
            side = p.size
            self.rescaling = Rescale()
            self.normalization = Normalize()
            self.stem_conv_pad = padding(side, 3)
            side = (side + 1) // 2
            self._conv("stem_conv", "stem_bn", "stem_activation", 3, STEM, 3, stride=2)
            for block in blocks():
                name, wide, kernel = block.name, block.expanded, block.kernel
                if block.expands:
                    made = (name + "expand_conv", name + "expand_bn", name + "expand_activation")
                    self._conv(*made, block.width, wide, 1)
                if block.stride == 2:
                    self.add_module(name + "dwconv_pad", padding(side, kernel))
                    side = (side + 1) // 2
                inside = 0 if block.stride == 2 else kernel // 2
                made = (name + "dwconv", name + "bn", name + "activation")
                self._conv(*made, wide, wide, kernel, block.stride, inside, wide)
                self.add_module(name + "se_squeeze", nn.AdaptiveAvgPool2d(1))
                self.add_module(name + "se_reduce", nn.Conv2d(wide, block.squeezed, 1))
                self.add_module(name + "se_swish", nn.SiLU())
                self.add_module(name + "se_expand", nn.Conv2d(block.squeezed, wide, 1))
                self.add_module(name + "se_gate", nn.Sigmoid())
                self.add_module(name + "se_excite", Multiply())
                self._conv(name + "project_conv", name + "project_bn", "", wide, block.filters, 1)
                if block.residual:
                    self.add_module(name + "add", Add())
            self._conv("top_conv", "top_bn", "top_activation", blocks()[-1].filters, TOP, 1)
            self.avg_pool = nn.AdaptiveAvgPool2d(1)
            self.predictions = nn.Linear(TOP, p.classes)
            self.softmax = nn.Softmax(-1)

        def _conv(
            self,
            conv: str,
            norm: str,
            act: str,
            width: int,
            filters: int,
            kernel: int,
            stride: int = 1,
            padding: int = 0,
            groups: int = 1,
        ) -> None:
            self.add_module(conv, nn.Conv2d(width, filters, kernel, stride, padding, groups=groups, bias=False))
            self.add_module(norm, nn.BatchNorm2d(filters, eps=EPSILON))
            if act:
                self.add_module(act, nn.SiLU())

        def _run(self, x: torch.Tensor, prefix: str, *names: str) -> torch.Tensor:
            for name in names:
                x = getattr(self, prefix + name)(x)
            return x

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self.normalization(self.rescaling(image)).permute(0, 3, 1, 2)
            x = self._run(x, "stem_", "conv_pad", "conv", "bn", "activation")
            for block in blocks():
                start = x
                if block.expands:
                    x = self._run(x, block.name, "expand_conv", "expand_bn", "expand_activation")
                if block.stride == 2:
                    x = self._run(x, block.name, "dwconv_pad")
                x = self._run(x, block.name, "dwconv", "bn", "activation")
                gate = self._run(x, block.name + "se_", "squeeze", "reduce", "swish", "expand", "gate")
                x = getattr(self, block.name + "se_excite")(x, gate)
                x = self._run(x, block.name, "project_conv", "project_bn")
                if block.residual:
                    x = getattr(self, block.name + "add")(x, start)
            x = self.avg_pool(self._run(x, "top_", "conv", "bn", "activation"))
            return self.softmax(self.predictions(x.flatten(1)))

    return EfficientNetB0()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    rest = [layer for layer in tf_model.layers if layer.name != "normalization"]
    weights.by_name(rest, torch_model)
    mean, variance, _ = tf_model.get_layer("normalization").get_weights()
    weights.put(torch_model.normalization.mean, mean)
    weights.put(torch_model.normalization.variance, variance)
