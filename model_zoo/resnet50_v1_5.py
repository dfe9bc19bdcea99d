"""ResNet-50 as Keras has it (v1) beside ResNet-50 as torchvision has it (v1.5): the same weights, not the same work.

conv 7x7/2 -> max pool 3x3/2 -> 3 + 4 + 6 + 3 bottleneck blocks -> average pool -> dense(classes, softmax) on (1, 224, 224, 3).

How the frameworks differ here
* Where a stage halves the image (conv3, conv4, conv5), Keras strides in the block's first 1x1 convolution, torchvision in
  its 3x3.  In torchvision's network that 1x1 therefore computes four times as many outputs, and so do the batch norm and
  relu behind it; the 3x3 gives as many as in Keras, from a larger input.  Every other layer does equal work.
* Parameters are the same, shape by shape, so weights can be carried over; the outputs differ all the same.
* Everything else is as in the pair resnet50: both sides have Keras' biases and epsilon, though torchvision's
  convolutions have no bias and its epsilon is 1e-5.
"""

from typing import Any

from reconcile.model_zoo import resnet50
from reconcile.model_zoo.pair import Pair, Published

NOT_EQUIVALENT = (
    "PyTorch's side strides in the 3x3 convolution of a block (v1.5, as torchvision), TensorFlow's in its first 1x1 "
    "(v1, as keras.applications)."
)

PAIR = Pair(
    name="resnet50_v1_5",
    params=dict(resnet50.PAIR.params),
    layers=resnet50.PAIR.layers,
    notes=(
        "The two sides are not equivalent: " + NOT_EQUIVALENT,
        "The work differs at conv3_block1_1, conv4_block1_1 and conv5_block1_1 alone: the 1x1 convolution and what follows "
        "it compute four times as many outputs in PyTorch.",
    ),
    published=(
        Published(
            "4.09e9",
            "GFLOPS (multiply-adds) of torchvision's resnet50",
            "torchvision's documentation of resnet50; 4.089 in meta _ops",
        ),
    ),
)

PROOF = resnet50.PROOF
inputs = resnet50.inputs
build_keras = resnet50.build_keras
copy_weights = resnet50.copy_weights


def build_torch(p: Any) -> Any:
    """The network with the stride in the 3x3."""
    return resnet50.twin(p, stride_in_3x3=True)
