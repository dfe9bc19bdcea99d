"""ConvNeXt-T as keras.applications has it: patches of 4, four stages of 3, 3, 9 and 3 blocks, depthwise 7x7 and two dense.

conv 4x4/4 -> blocks, halved between stages by norm and conv 2x2/2 -> average pool -> norm -> dense(classes, softmax)
on (1, 224, 224, 3).

How the frameworks differ here
* Keras' depthwise convolution is a Conv2D with as many groups as channels, which Keras compiles into a function of its
  own: a counter that does not enter functions misses it.  PyTorch's is an ordinary grouped convolution.
* Keras stays channels last, so its norms and dense layers read the last axis as it is.  PyTorch convolves channels first:
  the PyTorch side here, like the paper's code, moves the channels last for the norm and the dense layers and back.
* Keras' model normalises the pixels itself, by constants; the paper's code leaves that to the data loader.  The PyTorch
  side here has a module for it.
* Keras' layer scale starts at 1e-6, where a block is next to nothing; here it starts at 1 on both sides, so that the proof
  of equivalence can see the blocks.  Stochastic depth does nothing in inference.
* Keras' residual sums belong to no layer.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import weights
from reconcile.model_zoo.pair import Input, Layer, Pair, Published

STAGES = ((3, 96), (3, 192), (9, 384), (3, 768))
"""Blocks of a stage and its channels: ConvNeXt-T in section 3 of the paper."""

MEAN = (0.485 * 255, 0.456 * 255, 0.406 * 255)
VARIANCE = ((0.229 * 255) ** 2, (0.224 * 255) ** 2, (0.225 * 255) ** 2)
"""Of the pixels, 0..255, per channel."""

EPSILON = 1e-6

PARTS = ("depthwise_conv", "layernorm", "pointwise_conv_1", "gelu", "pointwise_conv_2", "layer_scale")
"""One block, whose input is added to what the last of these gives."""


def blocks(stage: int) -> list[str]:
    """Prefixes of a stage's blocks; every name in Keras begins with convnext_tiny_."""
    return [f"stage_{stage}_block_{index}_" for index in range(STAGES[stage][0])]


def layers() -> tuple[Layer, ...]:
    """One row per layer; the softmax belongs to the dense layer, the sums of the blocks to the model."""
    rows = [("prestem_normalization", "prestem_normalization")]
    rows += [(part, "stem." + part) for part in ("stem_conv", "stem_layernorm")]
    for stage in range(len(STAGES)):
        if stage:
            inside = f"downsampling_block_{stage - 1}."
            rows += [(n, inside + n) for n in (f"downsampling_layernorm_{stage - 1}", f"downsampling_conv_{stage - 1}")]
        rows += [(block + part, block + part) for block in blocks(stage) for part in PARTS]
    rows += [(name, name) for name in ("head_gap", "head_layernorm", "head_dense")]
    extra = {"head_dense": ("head_dense", "softmax")}

    def in_keras(path: str) -> str:
        return ".".join("convnext_tiny_" + part for part in path.split("."))

    return tuple(Layer(name, in_keras(path), extra.get(name, name)) for name, path in rows)


PAIR = Pair(
    name="convnext_tiny",
    params={"batch": 1, "size": 224, "classes": 1000},
    layers=layers(),
    notes=(
        "Keras compiles its depthwise convolutions into functions of their own.",
        "Layer scale starts at 1 on both sides, not at 1e-6, so that the proof of equivalence can see the blocks.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published(
            "4.5G",
            "FLOPs at 224 x 224",
            "the authors: facebookresearch/ConvNeXt, README.md; arXiv:2201.03545",
        ),
        Published(
            "4.456G",
            "operations in units of 1e9, under GFLOPS in the documentation",
            "torchvision, meta _ops of ConvNeXt_Tiny_Weights.IMAGENET1K_V1",
        ),
    ),
)

PROOF = {"size": "32", "classes": "10"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> list[Input]:
    """Images, channels last: (batch, size, size, 3)."""
    return [Input("image", (p.batch, p.size, p.size, 3))]


def build_keras(p: Any, keras: Any) -> Any:
    """keras.applications.ConvNeXtTiny, not trained; its layer scale at 1."""
    image = keras.layers.Input(batch_shape=(p.batch, p.size, p.size, 3), name="image")
    model = keras.applications.ConvNeXtTiny(weights=None, input_tensor=image, classes=p.classes)
    for layer in model.layers:
        if layer.name.endswith("layer_scale"):
            layer.gamma.assign(keras.ops.ones(layer.gamma.shape))
    return model


def build_torch(p: Any) -> Any:
    """The same network in PyTorch, every layer by its name in Keras without the prefix; it takes the image channels last."""
    import torch
    from torch import nn

    class Normalize(nn.Module):
        """Pixels by mean and variance per channel."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mean, deviation = x.new_tensor(MEAN), x.new_tensor(VARIANCE).sqrt()
            return (x - mean) / torch.clamp(deviation, min=1e-7)

    class Scale(nn.Module):
        """A factor per channel."""

        def __init__(self, width: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    class ConvNeXtTiny(nn.Module):
        """Between layers the channels are last."""

        def __init__(self) -> None:
            super().__init__()
            self.prestem_normalization = Normalize()
            before = STAGES[0][1]
            self.stem_conv = nn.Conv2d(3, before, 4, 4)
            self.stem_layernorm = nn.LayerNorm(before, eps=EPSILON)
            for stage, (_count, width) in enumerate(STAGES):
                if stage:
                    self.add_module(f"downsampling_layernorm_{stage - 1}", nn.LayerNorm(before, eps=EPSILON))
                    self.add_module(f"downsampling_conv_{stage - 1}", nn.Conv2d(before, width, 2, 2))
                for block in blocks(stage):
                    self.add_module(block + "depthwise_conv", nn.Conv2d(width, width, 7, padding=3, groups=width))
                    self.add_module(block + "layernorm", nn.LayerNorm(width, eps=EPSILON))
                    self.add_module(block + "pointwise_conv_1", nn.Linear(width, 4 * width))
                    self.add_module(block + "gelu", nn.GELU())
                    self.add_module(block + "pointwise_conv_2", nn.Linear(4 * width, width))
                    self.add_module(block + "layer_scale", Scale(width))
                before = width
            self.head_gap = nn.AdaptiveAvgPool2d(1)
            self.head_layernorm = nn.LayerNorm(before, eps=EPSILON)
            self.head_dense = nn.Linear(before, p.classes)
            self.softmax = nn.Softmax(-1)

        def _convolve(self, name: str, x: torch.Tensor) -> torch.Tensor:
            return getattr(self, name)(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self._convolve("stem_conv", self.prestem_normalization(image))
            x = self.stem_layernorm(x)
            for stage in range(len(STAGES)):
                if stage:
                    x = getattr(self, f"downsampling_layernorm_{stage - 1}")(x)
                    x = self._convolve(f"downsampling_conv_{stage - 1}", x)
                for block in blocks(stage):
                    y = self._convolve(block + PARTS[0], x)
                    for part in PARTS[1:]:
                        y = getattr(self, block + part)(y)
                    x = x + y
            x = self.head_gap(x.permute(0, 3, 1, 2)).flatten(1)
            return self.softmax(self.head_dense(self.head_layernorm(x)))

    return ConvNeXtTiny()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights: a Sequential's layers have names of their own."""
    for layer in [inner for outer in tf_model.layers for inner in getattr(outer, "layers", [outer])]:
        if not layer.weights:
            continue
        module = getattr(torch_model, layer.name.removeprefix("convnext_tiny_"))
        if len(layer.weights) == 1:  # a LayerScale, whose variable has no name
            weights.put(module.weight, layer.gamma.numpy())
        else:
            weights.of_kind(layer, module)
