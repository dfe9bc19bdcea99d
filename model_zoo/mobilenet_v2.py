"""MobileNetV2 (width 1.0) as keras.applications has it: 17 inverted residual blocks of 1x1, depthwise 3x3 and 1x1.

conv 3x3/2 -> 17 blocks -> conv 1x1 (1280) -> average pool -> dense(classes, softmax) on (1, 224, 224, 3).

How the frameworks differ here
* Keras pads where it strides as TensorFlow's "same" does: a row below and a column to the right, none above and to the
  left.  torchvision pads one all around, which gives as many outputs from other pixels.  The PyTorch side here pads as
  Keras does, with a layer of its own.
* Keras' batch norms have epsilon 1e-3, torchvision's 1e-5; both sides here have Keras'.
* Keras' depthwise convolution is an op of its own (DepthwiseConv2dNative), PyTorch's a grouped convolution.
"""

from typing import Any, List, NamedTuple, Tuple

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

GROUPS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, filters, blocks and stride of the first: table 2 of the paper."""

EPSILON = 1e-3


class Block(NamedTuple):
    """One inverted residual block: ``name`` is the prefix of its layers in Keras."""

    name: str
    width: int
    expanded: int
    filters: int
    stride: int

    @property
    def residual(self) -> bool:
        """Whether its input is added to its output."""
        return self.stride == 1 and self.width == self.filters


def blocks() -> List[Block]:
    """Every block in order."""
    found: List[Block] = []
    width = 32
    for expansion, filters, count, stride in GROUPS:
        for index in range(count):
            name = f"block_{len(found)}_" if found else "expanded_conv_"
            found.append(Block(name, width, width * expansion, filters, stride if index == 0 else 1))
            width = filters
    return found


def layer_names() -> List[str]:
    """Names of the layers that do work, in order; the same on either side."""
    found = ["Conv1", "bn_Conv1", "Conv1_relu"]
    for block in blocks():
        parts = ["expand", "expand_BN", "expand_relu"] if block.expanded != block.width else []
        parts += ["depthwise", "depthwise_BN", "depthwise_relu", "project", "project_BN"]
        parts += ["add"] if block.residual else []
        found += [block.name + part for part in parts]
    return found + ["Conv_1", "Conv_1_bn", "out_relu", "predictions"]


def layers() -> Tuple[Layer, ...]:
    """One row per layer; the softmax belongs to the dense layer."""
    found = [Layer(name, name, name) for name in layer_names()[:-1]]
    found.append(Layer("avg_pool", "global_average_pooling2d", "avg_pool"))
    found.append(Layer("predictions", "predictions", ("predictions", "softmax")))
    return tuple(found)


PAIR = Pair(
    name="mobilenet_v2",
    params={"batch": 1, "size": 224, "classes": 1000},
    layers=layers(),
    notes=(
        "Keras pads below and to the right where it strides, torchvision all around: as many products. The PyTorch side "
        "here pads as Keras.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published("300M", "multiply-adds at 224 x 224, width 1.0", "Sandler et al. 2018, table 4, arXiv:1801.04381"),
        Published(
            "0.301G",
            "operations in units of 1e9, under GFLOPS in the documentation",
            "torchvision, meta _ops of MobileNet_V2_Weights.IMAGENET1K_V1",
        ),
    ),
)

PROOF = {"size": "32", "classes": "10"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> List[Input]:
    """Images, channels last: (batch, size, size, 3)."""
    return [Input("image", (p.batch, p.size, p.size, 3))]


def build_keras(p: Any, keras: Any) -> Any:
    """keras.applications.MobileNetV2, not trained."""
    image = keras.layers.Input(batch_shape=(p.batch, p.size, p.size, 3), name="image")
    shape = (p.size, p.size, 3)
    return keras.applications.MobileNetV2(weights=None, input_tensor=image, input_shape=shape, classes=p.classes)


def build_torch(p: Any) -> Any:
    """The same network in PyTorch, every layer by its name in Keras; it takes the image channels last."""
    import torch

    def padding(side: int) -> Any:
        """TensorFlow's "same" before a 3x3 of stride 2."""
        before = 1 - (side % 2 == 0)
        return torch.nn.ZeroPad2d((before, 1, before, 1))

    class Add(torch.nn.Module):
        """The residual sum, as a layer of its own so that it has a name."""

        def forward(self, shortcut: Any, x: Any) -> Any:
            return shortcut + x

    class MobileNetV2(torch.nn.Module):
        """Every layer by its name in Keras."""

        def __init__(self) -> None:
            super().__init__()
            side = p.size
            self.Conv1_pad = padding(side)
            side = (side + 1) // 2
            self._conv("Conv1", "bn_Conv1", "Conv1_relu", 3, 32, 3, stride=2)
            for block in blocks():
                name = block.name
                if block.expanded != block.width:
                    parts = (name + "expand", name + "expand_BN", name + "expand_relu")
                    self._conv(parts[0], parts[1], parts[2], block.width, block.expanded, 1)
                if block.stride == 2:
                    self.add_module(name + "pad", padding(side))
                    side = (side + 1) // 2
                parts = (name + "depthwise", name + "depthwise_BN", name + "depthwise_relu")
                inside = 0 if block.stride == 2 else 1
                wide = block.expanded
                self._conv(parts[0], parts[1], parts[2], wide, wide, 3, block.stride, inside, groups=wide)
                self._conv(name + "project", name + "project_BN", "", wide, block.filters, 1)
                if block.residual:
                    self.add_module(name + "add", Add())
            self._conv("Conv_1", "Conv_1_bn", "out_relu", block.filters, 1280, 1)
            self.avg_pool = torch.nn.AdaptiveAvgPool2d(1)
            self.predictions = torch.nn.Linear(1280, p.classes)
            self.softmax = torch.nn.Softmax(-1)

        def _conv(
            self,
            conv: str,
            norm: str,
            relu: str,
            width: int,
            filters: int,
            kernel: int,
            stride: int = 1,
            padding: int = 0,
            groups: int = 1,
        ) -> None:
            made = torch.nn.Conv2d(width, filters, kernel, stride, padding, groups=groups, bias=False)
            self.add_module(conv, made)
            self.add_module(norm, torch.nn.BatchNorm2d(filters, eps=EPSILON))
            if relu:
                self.add_module(relu, torch.nn.ReLU6())

        def _run(self, x: Any, *names: str) -> Any:
            for name in names:
                x = getattr(self, name)(x)
            return x

        def forward(self, x: Any) -> Any:
            x = self._run(x.permute(0, 3, 1, 2), "Conv1_pad", "Conv1", "bn_Conv1", "Conv1_relu")
            for block in blocks():
                name = block.name
                start = x
                if block.expanded != block.width:
                    x = self._run(x, name + "expand", name + "expand_BN", name + "expand_relu")
                if block.stride == 2:
                    x = self._run(x, name + "pad")
                x = self._run(x, name + "depthwise", name + "depthwise_BN", name + "depthwise_relu")
                x = self._run(x, name + "project", name + "project_BN")
                if block.residual:
                    x = getattr(self, name + "add")(start, x)
            x = self._run(x, "Conv_1", "Conv_1_bn", "out_relu", "avg_pool")
            return self.softmax(self.predictions(x.flatten(1)))

    return MobileNetV2()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    import torch

    for name in layer_names():
        weights = [torch.as_tensor(array) for array in tf_model.get_layer(name).get_weights()]
        module = getattr(torch_model, name)
        if len(weights) == 4:
            for held, value in zip((module.weight, module.bias, module.running_mean, module.running_var), weights):
                held.data.copy_(value)
        elif name == "predictions":
            module.weight.data.copy_(weights[0].T)
            module.bias.data.copy_(weights[1])
        elif name.endswith("depthwise"):  # (rows, columns, channels, 1)
            module.weight.data.copy_(weights[0].permute(2, 3, 0, 1))
        elif weights:
            module.weight.data.copy_(weights[0].permute(3, 2, 0, 1))
