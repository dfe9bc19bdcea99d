"""ResNet-50 as keras.applications has it (v1): the stride of a stage lies in the first 1x1 convolution of its first block.

conv 7x7/2 -> max pool 3x3/2 -> 3 + 4 + 6 + 3 bottleneck blocks -> average pool -> dense(classes, softmax) on (1, 224, 224, 3).

How the frameworks differ here
* torchvision's resnet50 is v1.5: its stride lies in the 3x3, which then reads the larger image.  The PyTorch side here is
  written out with Keras' strides; the pair resnet50_v1_5 has torchvision's, and its difference in work is a real one.
* Keras' convolutions carry biases although a batch norm follows, torchvision's do not: here both sides have them, and
  both batch norms have Keras' epsilon 1.001e-5.
* Keras pads with zeros before the first convolution and before the max pool; PyTorch pads inside of them (the max pool
  with -inf, which is the same behind a relu).
"""

from typing import Any, List, Tuple

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

STAGES = (("conv2", 64, 3, 1), ("conv3", 128, 4, 2), ("conv4", 256, 6, 2), ("conv5", 512, 3, 2))
"""Name of a stage in Keras, its filters, its blocks, its stride."""

EPSILON = 1.001e-5


def blocks() -> List[Tuple[str, int, int, bool]]:
    """Every block in order: (name in Keras, filters, stride, whether its shortcut is a convolution)."""
    return [
        (f"{stage}_block{index + 1}", filters, stride if index == 0 else 1, index == 0)
        for stage, filters, count, stride in STAGES
        for index in range(count)
    ]


def layer_names() -> List[str]:
    """Names of the layers that do work, in order; the same on either side."""
    found = ["conv1_conv", "conv1_bn", "conv1_relu", "pool1_pool"]
    for block, _filters, _stride, projected in blocks():
        parts = ["0_conv", "0_bn"] if projected else []
        parts += ["1_conv", "1_bn", "1_relu", "2_conv", "2_bn", "2_relu", "3_conv", "3_bn", "add", "out"]
        found += [block + "_" + part for part in parts]
    return found + ["avg_pool", "predictions"]


def layers() -> Tuple[Layer, ...]:
    """One row per layer; the softmax belongs to the dense layer."""
    torch = {"predictions": ("predictions", "softmax")}
    return tuple(Layer(name, tf=name, torch=torch.get(name, name)) for name in layer_names())


PAIR = Pair(
    name="resnet50",
    params={"batch": 1, "size": 224, "classes": 1000},
    layers=layers(),
    notes=(
        "Keras' ResNet50 is v1, stride in the 1x1 convolution; torchvision's resnet50 is v1.5, stride in the 3x3: see "
        "resnet50_v1_5. The PyTorch side here follows Keras.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published("51,112,224", "forward, tf.profiler, TF 2.x, session graph with batch None", "the post"),
        Published("102,224,449", "forward and backward, tf.profiler, TF 2.x, session graph", "the post"),
        Published("51,112,225", "backward: the second of these less the first", "the post"),
        Published(
            "3.8e9", "FLOPs (multiply-adds) of the 50-layer network", "He et al. 2015, table 1, arXiv:1512.03385"
        ),
    ),
)

PROOF = {"size": "32", "classes": "10"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> List[Input]:
    """Images, channels last: (batch, size, size, 3)."""
    return [Input("image", (p.batch, p.size, p.size, 3))]


def build_keras(p: Any, keras: Any) -> Any:
    """keras.applications.ResNet50, not trained."""
    image = keras.layers.Input(batch_shape=(p.batch, p.size, p.size, 3), name="image")
    return keras.applications.ResNet50(weights=None, input_tensor=image, classes=p.classes)


def build_torch(p: Any) -> Any:
    """The same network in PyTorch, the stride in the first 1x1 of a block."""
    return twin(p, stride_in_3x3=False)


def twin(p: Any, stride_in_3x3: bool) -> Any:
    """ResNet-50 with Keras' layer names; it takes the image as Keras does, channels last."""
    import torch

    class ResNet50(torch.nn.Module):
        """Every layer by its name in Keras."""

        def __init__(self) -> None:
            super().__init__()
            self._conv("conv1", 3, 64, 7, 2, 3)
            self.conv1_relu = torch.nn.ReLU()
            self.pool1_pool = torch.nn.MaxPool2d(3, 2, padding=1)
            width = 64
            for name, filters, stride, projected in blocks():
                first, second = (1, stride) if stride_in_3x3 else (stride, 1)
                if projected:
                    self._conv(name + "_0", width, 4 * filters, 1, stride, 0)
                self._conv(name + "_1", width, filters, 1, first, 0)
                self._conv(name + "_2", filters, filters, 3, second, 1)
                self._conv(name + "_3", filters, 4 * filters, 1, 1, 0)
                self.add_module(name + "_1_relu", torch.nn.ReLU())
                self.add_module(name + "_2_relu", torch.nn.ReLU())
                self.add_module(name + "_add", Add())
                self.add_module(name + "_out", torch.nn.ReLU())
                width = 4 * filters
            self.avg_pool = torch.nn.AdaptiveAvgPool2d(1)
            self.predictions = torch.nn.Linear(width, p.classes)
            self.softmax = torch.nn.Softmax(-1)

        def _conv(self, name: str, width: int, filters: int, kernel: int, stride: int, padding: int) -> None:
            self.add_module(name + "_conv", torch.nn.Conv2d(width, filters, kernel, stride, padding))
            self.add_module(name + "_bn", torch.nn.BatchNorm2d(filters, eps=EPSILON))

        def _run(self, name: str, x: Any) -> Any:
            x = getattr(self, name + "_bn")(getattr(self, name + "_conv")(x))
            relu = getattr(self, name + "_relu", None)
            return x if relu is None else relu(x)

        def forward(self, x: Any) -> Any:
            x = self.pool1_pool(self._run("conv1", x.permute(0, 3, 1, 2)))
            for name, _filters, _stride, projected in blocks():
                shortcut = self._run(name + "_0", x) if projected else x
                for part in ("_1", "_2", "_3"):
                    x = self._run(name + part, x)
                x = getattr(self, name + "_out")(getattr(self, name + "_add")(shortcut, x))
            return self.softmax(self.predictions(self.avg_pool(x).flatten(1)))

    class Add(torch.nn.Module):
        """The residual sum, as a layer of its own so that it has a name."""

        def forward(self, shortcut: Any, x: Any) -> Any:
            return shortcut + x

    return ResNet50()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    import torch

    for name in layer_names():
        weights = [torch.as_tensor(array) for array in tf_model.get_layer(name).get_weights()]
        module = getattr(torch_model, name)
        if name.endswith("_conv"):
            module.weight.data.copy_(weights[0].permute(3, 2, 0, 1))
            module.bias.data.copy_(weights[1])
        elif name.endswith("_bn"):
            for held, value in zip((module.weight, module.bias, module.running_mean, module.running_var), weights):
                held.data.copy_(value)
        elif name == "predictions":
            module.weight.data.copy_(weights[0].T)
            module.bias.data.copy_(weights[1])
