"""VGG-16 as keras.applications has it: 13 convolutions 3x3, five max pools, three dense layers.

On (1, 224, 224, 3): 15.3e9 of its 15.5e9 multiply-accumulates lie in the convolutions, 89 % of its weights in the dense
layers.

How the frameworks differ here
* Keras' Flatten reads rows, columns, channels; PyTorch's reads channels, rows, columns.  The PyTorch side here moves the
  channels last first, so that the first dense layer has the same weights.
* Keras' relu is part of its convolution layer, PyTorch's a layer of its own.
* torchvision's vgg16 pools to 7 x 7 before the dense layers, whatever the image's size; at 224 that changes nothing.
"""

from typing import Any, List, Tuple

from reconcile.model_zoo.pair import Input, Layer, Pair, Published

BLOCKS = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))
"""Convolutions of a block and their filters."""

DENSE = 4096


def conv_names() -> List[Tuple[str, int, bool]]:
    """Every convolution in order: (name in Keras, filters, whether a pool follows)."""
    return [
        (f"block{block + 1}_conv{index + 1}", filters, index == count - 1)
        for block, (count, filters) in enumerate(BLOCKS)
        for index in range(count)
    ]


def layers() -> Tuple[Layer, ...]:
    """One row per layer; a relu belongs to the layer before it."""
    found: List[Layer] = []
    for name, _filters, pooled in conv_names():
        found.append(Layer(name, name, (name, name + "_relu")))
        if pooled:
            pool = name.split("_")[0] + "_pool"
            found.append(Layer(pool, pool, pool))
    found += [Layer(name, name, (name, name + "_relu")) for name in ("fc1", "fc2")]
    found.append(Layer("predictions", "predictions", ("predictions", "softmax")))
    return tuple(found)


PAIR = Pair(
    name="vgg16",
    params={"batch": 1, "size": 224, "classes": 1000},
    layers=layers(),
    notes=(
        "Flatten reads channels last in Keras and channels first in PyTorch; the PyTorch side moves the channels.",
        "No weights are downloaded: both sides are initialised at random.",
    ),
    published=(
        Published("15.5e9", "MACs to process one 224 x 224 image", "Sze et al. 2017, arXiv:1703.09039"),
        Published("15.3e9", "FLOPs, beside those of ResNets", "He et al. 2015, section 4.1, arXiv:1512.03385"),
        Published(
            "15.47e9",
            "operations in units of 1e9, under GFLOPS in the documentation",
            "torchvision, meta _ops of VGG16_Weights.IMAGENET1K_V1",
        ),
    ),
)

PROOF = {"size": "32", "classes": "10"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> List[Input]:
    """Images, channels last: (batch, size, size, 3)."""
    return [Input("image", (p.batch, p.size, p.size, 3))]


def build_keras(p: Any, keras: Any) -> Any:
    """keras.applications.VGG16, not trained."""
    image = keras.layers.Input(batch_shape=(p.batch, p.size, p.size, 3), name="image")
    return keras.applications.VGG16(weights=None, input_tensor=image, classes=p.classes)


def build_torch(p: Any) -> Any:
    """The same network in PyTorch, every layer by its name in Keras; it takes the image channels last."""
    import torch

    class VGG16(torch.nn.Module):
        """Every layer by its name in Keras."""

        def __init__(self) -> None:
            super().__init__()
            width, side = 3, p.size
            for name, filters, pooled in conv_names():
                self.add_module(name, torch.nn.Conv2d(width, filters, 3, padding=1))
                self.add_module(name + "_relu", torch.nn.ReLU())
                width = filters
                if pooled:
                    self.add_module(name.split("_")[0] + "_pool", torch.nn.MaxPool2d(2))
                    side //= 2
            self.fc1 = torch.nn.Linear(side * side * width, DENSE)
            self.fc1_relu = torch.nn.ReLU()
            self.fc2 = torch.nn.Linear(DENSE, DENSE)
            self.fc2_relu = torch.nn.ReLU()
            self.predictions = torch.nn.Linear(DENSE, p.classes)
            self.softmax = torch.nn.Softmax(-1)

        def forward(self, x: Any) -> Any:
            x = x.permute(0, 3, 1, 2)
            for name, _filters, pooled in conv_names():
                x = getattr(self, name + "_relu")(getattr(self, name)(x))
                if pooled:
                    x = getattr(self, name.split("_")[0] + "_pool")(x)
            x = x.permute(0, 2, 3, 1).flatten(1)
            x = self.fc2_relu(self.fc2(self.fc1_relu(self.fc1(x))))
            return self.softmax(self.predictions(x))

    return VGG16()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights; the layers have the same names."""
    import torch

    for name in [conv[0] for conv in conv_names()] + ["fc1", "fc2", "predictions"]:
        kernel, bias = [torch.as_tensor(array) for array in tf_model.get_layer(name).get_weights()]
        module = getattr(torch_model, name)
        module.weight.data.copy_(kernel.permute(3, 2, 0, 1) if kernel.dim() == 4 else kernel.T)
        module.bias.data.copy_(bias)
