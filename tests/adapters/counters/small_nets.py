"""Small networks for counters in environments of their own: a worker there imports this file and asks for one by its name.

Each function returns a model and its input.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

attend = functional.scaled_dot_product_attention
ones = torch.ones
HEADS = ones(2, 3, 5, 4)


class Does(nn.Module):
    """A function of the module and its input; what it computes with is held by name. torch.fx knows one input by its name."""

    def __init__(self, function: Callable[..., Any], **held: Any) -> None:
        super().__init__()
        self.function = function
        for name, value in held.items():
            self.register_buffer(name, value) if type(value) is torch.Tensor else setattr(self, name, value)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class Joins(Does):
    """The same of two inputs."""

    def forward(self, x: Any, y: Any) -> Any:
        return self.function(self, x, y)


class Takes(Does):
    """The same of any number of tensors."""

    def forward(self, *given: Any) -> Any:
        return self.function(self, given)


def called(function: Callable[..., Any]) -> nn.Module:
    """A model that calls this function."""
    return Takes(lambda _, given: function(*given))


class Doubled(nn.Linear):
    """A subclass that does twice the work of its base, and a product of its own."""

    def forward(self, x: Any) -> Any:
        return super().forward(x) + super().forward(x) @ ones(4, 4)


class Mine(nn.Conv2d):
    """A class of its own, derived from one that the model has as well."""


@torch.compiler.disable
def aside(layer: Any, x: Any) -> Any:
    """The layer, where torch.compile does not look."""
    return layer(x)


def run_mixed(m: Any, x: Any) -> Any:
    """A convolution, a transposed one, a layer that runs three times, and a product in a function."""
    x = m.transposed(m.convolution(x))
    for _ in range(3):
        x = torch.relu(m.layer(x))
    return x @ x.transpose(-1, -2)


def run_projected(m: Any, x: Any) -> Any:
    q = m.project(x)
    return attend(q, q, q)


def three_times(m: Any, x: Any) -> Any:
    for _ in range(3):
        x = m.convolution(x)
    return x @ ones(5, 6)


def number_of_sizes(m: Any, x: Any) -> Any:
    """A product whose size is computed from those of the input, which are numbers."""
    y = m.layer(x)
    return y.reshape(y.shape[0] * y.shape[1])


def products_of_three(_: Any, x: Any) -> Any:
    """The same product of 2 x 3 and 3 x 5 three times, of which torch.mm is one; a sum; and a convolution as a function."""
    w = ones(3, 5)
    y = x @ w + torch.matmul(x, w) + torch.mm(x, w)
    return functional.conv1d(y[None], ones(1, 2, 1))


def as_a_function(owner: Any, x: Any) -> Any:
    m = owner.attention
    return functional.multi_head_attention_forward(
        x, x, x, 8, 4, m.in_proj_weight, None, None, None, False, 0.0, m.out_proj.weight, None, training=False
    )[0]


def of_integers(_: Any, x: Any) -> Any:
    return x * (torch.ones(2, 3, dtype=torch.long) @ torch.ones(3, 5, dtype=torch.long)).sum()


def all_with_all(m: Any, x: Any) -> Any:
    """Every position of an image is multiplied with every other one, which grows with the square of the area."""
    x = m.conv(x).flatten(2)
    return x.transpose(1, 2) @ x


def twice() -> Any:
    """One layer under two parents."""
    shared = nn.Linear(3, 4, bias=False)
    return Does(lambda m, x: m.a(x) + m.b(x), a=nn.Sequential(shared), b=nn.Sequential(shared)), ones(2, 3)


def lenet() -> Any:
    """The LeNet of paddle.flops's own documentation."""
    features = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )  # fmt: skip
    dense = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))
    return nn.Sequential(OrderedDict(features=features, fc=dense)), ones(1, 1, 28, 28)


def classifier(size: tuple[int, ...], *stride: float) -> Any:
    """A convolution that grows with the area, and a layer behind a pooling that does not."""
    conv = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
    net = nn.Sequential(conv, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 5, bias=False))
    if stride:
        net.stride = torch.tensor(stride)
    return net, ones(size)


def patches() -> nn.Module:
    return nn.Conv2d(3, 4, 8, stride=8, bias=False)


def pooled() -> Any:
    pools = nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(nn.BatchNorm2d(3), nn.LeakyReLU(), nn.Softmax(-1), *pools), ones(2, 3, 10, 10)


def steps(**options: Any) -> Any:
    return nn.Sequential(nn.GRU(3, 4, **options)), ones(2, 5, 3)


def held(function: Callable[..., Any], *inputs: Any, **modules: Any) -> Any:
    """A model of this function that is called with one or two inputs."""
    return (Joins if len(inputs) == 2 else Does)(function, **modules), inputs


NETS: dict[str, Callable[[], Any]] = {
    # layers
    "dense": lambda: (nn.Sequential(nn.Linear(3, 4)), ones(2, 3)),
    "of_steps": lambda: (nn.Sequential(nn.Linear(3, 4)), ones(2, 5, 3)),
    "biased": lambda: (nn.Sequential(nn.Linear(3, 4), nn.ReLU()), ones(2, 3)),
    "gelu": lambda: (nn.Sequential(nn.Linear(3, 4, bias=False), nn.GELU()), ones(2, 3)),
    "in_place": lambda: (nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(), nn.LeakyReLU(inplace=True)), ones(2, 3)),
    "plain_norm": lambda: (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, affine=False)), ones(2, 3)),
    "without_weights": lambda: (nn.Sequential(nn.ReLU()), ones(2, 3)),
    "parametrized": lambda: (nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))), ones(2, 3)),
    "doubled": lambda: (nn.Sequential(Doubled(3, 4, bias=False)), ones(2, 3)),
    "mine": lambda: (nn.Sequential(Mine(3, 3, 1), nn.Conv2d(3, 3, 1)), ones(1, 3, 4, 4)),
    "derived": lambda: (nn.Sequential(nn.Conv2d(3, 3, 1), Mine(3, 3, 1)), ones(1, 3, 4, 4)),
    "same": lambda: (nn.Conv1d(3, 4, 3, padding="same", bias=False), ones(1, 3, 5)),
    "turned": lambda: (nn.Sequential(nn.ConvTranspose1d(6, 6, 2, stride=2, groups=2, bias=False)), ones(1, 6, 5)),
    "turned_images": lambda: (nn.Sequential(nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2)), ones(2, 6, 5, 4)),
    "turned_whole": lambda: (nn.Sequential(nn.ConvTranspose2d(4, 6, 2, stride=2)), ones(1, 4, 5, 3)),
    "transposed": lambda: (nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, bias=False), ones(1, 4, 5, 5)),
    "raised": lambda: (nn.Sequential(nn.Upsample(scale_factor=2)), ones(2, 6, 5, 4)),
    "elementwise": pooled,
    "recurrent": steps,
    "batch_first": lambda: steps(batch_first=True),
    "tokens": lambda: (nn.Sequential(nn.Embedding(7, 3)), torch.ones(2, 5, dtype=torch.int64)),
    "whole": lambda: (nn.Transformer(4, 2, 1, 1, 8, batch_first=True), (ones(1, 3, 4), ones(1, 3, 4))),
    "encoded": lambda: (
        nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Linear(4, 1)), ones(1, 5, 4),
    ),
    "lenet": lenet,
    # layers and functions
    "mixed": lambda: held(
        run_mixed, ones(2, 4, 6, 6), convolution=nn.Conv2d(4, 6, 3, groups=2), layer=nn.Linear(8, 8),
        transposed=nn.ConvTranspose2d(6, 4, 2, stride=2),
    ),
    "projected": lambda: held(run_projected, ones(2, 3, 5, 4), project=nn.Linear(4, 4)),
    # a product in each of two graphs of torch.compile, and one between them
    "broken": lambda: held(
        lambda m, x: m.after(aside(m.between, m.before(x))), ones(2, 5, 3),
        before=nn.Linear(3, 4), between=nn.Linear(4, 6), after=nn.Linear(6, 5),
    ),
    "beside": lambda: held(
        lambda m, x: m.drop(m.layer(x)) @ ones(4, 5), ones(2, 3), layer=nn.Linear(3, 4), drop=nn.Dropout(0.5)
    ),
    # attention with a mask, which returns the mean of its weights
    "masked": lambda: held(
        lambda m, x: m.attention(x, x, x, attn_mask=torch.zeros(5, 5))[0], ones(1, 5, 4),
        attention=nn.MultiheadAttention(4, 2, batch_first=True),
    ),
    "reused": lambda: held(three_times, ones(2, 4, 7, 5), convolution=nn.Conv2d(4, 4, 3, padding=1)),
    "shrinking": lambda: held(
        lambda m, x: m.convolution(m.convolution(x)), ones(1, 4, 7, 5), convolution=nn.Conv2d(4, 4, 3)
    ),
    # a layer below one whose name ends as X2Paddle's second names do, with one more call after another layer
    "nested": lambda: held(
        lambda m, x: m.inner(m.inner__1(m.inner(x))), ones(1, 4, 7, 5), inner=nn.Sequential(nn.Conv2d(4, 4, 1, bias=False)),
        inner__1=nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=False)),
    ),
    "unknown": lambda: (nn.Sequential(Does(lambda _, x: x.movedim(1, -1))), ones(2, 3, 4)),
    "numbers": lambda: held(number_of_sizes, ones(2, 3), layer=nn.Linear(3, 4, bias=False)),
    # the root of a buffer is computed while torch.fx makes the graph
    "on_weights": lambda: held(
        lambda m, x: m.layer(x) * torch.sqrt(m.scale), ones(2, 3), layer=nn.Linear(3, 4), scale=ones(4)
    ),
    "many": lambda: (
        Takes(lambda m, given: m.layer(given[0]) + given[1], layer=nn.Linear(3, 4)), (ones(2, 3), ones(2, 4)),
    ),
    "branching": lambda: (
        nn.Sequential(nn.Linear(3, 4), Does(lambda _, x: x * 2 if x.sum() > 0 else x)), ones(2, 3),
    ),
    "sized": lambda: held(lambda m, x: m.layer(x).reshape(x.size()) * 2, ones(2, 3, 4), layer=nn.Linear(4, 4)),
    "two": lambda: held(lambda m, x, y: ((z := m.layer(x)) + y, z), ones(2, 3), ones(2, 4), layer=nn.Linear(3, 4)),
    "paired": lambda: held(lambda m, x, y: m.pair(x) + m.pair(y), ones(2, 3), ones(2, 3), pair=nn.Linear(3, 4)),
    "bilinear": lambda: held(
        lambda m, x, y: m.pair(x, y), ones(2, 3), ones(2, 4), pair=nn.Bilinear(3, 4, 5, bias=False)
    ),
    "twice": twice,
    "named": lambda: held(lambda m, x: m.gru(input=x)[0], ones(5, 2, 3), gru=nn.GRU(3, 4, bias=False)),
    # sequences of 5, 3 and 1 steps
    "packed": lambda: held(
        lambda m, x: m.gru(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 1])))[0].data, ones(5, 3, 3),
        gru=nn.GRU(3, 4, bias=False),
    ),
    "attention": lambda: held(
        lambda m, x: m.attention(x, x, x)[0], ones(5, 2, 8), attention=nn.MultiheadAttention(8, 4, bias=False)
    ),
    "attention_function": lambda: held(as_a_function, ones(5, 2, 8), attention=nn.MultiheadAttention(8, 4, bias=False)),
    # images
    "images": lambda: classifier((1, 3, 64, 128)),
    "with_stride": lambda: classifier((1, 3, 64, 128), 8.0, 16.0, 64.0),
    "uneven": lambda: classifier((1, 3, 64, 80)),
    "two_images": lambda: classifier((2, 3, 64, 64)),
    "pixels": lambda: held(all_with_all, ones(1, 3, 64, 64), conv=patches()),
    # a model of images of one size: get_flops cannot run a smaller one
    "one_size": lambda: (
        nn.Sequential(patches(), nn.Flatten(), nn.Linear(4 * 8 * 8, 5, bias=False)), ones(1, 3, 64, 64),
    ),
    # functions
    "vectors": lambda: held(
        lambda _, x: (x @ ones(3)).sum() + (ones(2) @ x).sum() + torch.matmul(ones(3), ones(3)), ones(2, 3)
    ),
    "products": lambda: held(products_of_three, ones(2, 3)),
    # a product that torchprofile's table lacks, and one that it has
    "some_products": lambda: held(lambda _, x: torch.mm(x, ones(3, 5)).sum() + (x @ ones(3)).sum(), ones(2, 3)),
    # two products of as many multiply-adds each, one with a bias
    "like_products": lambda: held(
        lambda _, x: functional.linear(x, ones(3, 5).t(), ones(5)) + x @ ones(3, 5), ones(2, 3)
    ),
    "integers": lambda: held(of_integers, ones(2, 3)),
    # inductor makes multiplications and a sum of them on a CPU
    "dots": lambda: held(lambda _, x, y: torch.bmm(x, y), ones(2, 1, 3), ones(2, 3, 1)),
    "broadcast": lambda: held(lambda _, x, y: torch.mul(x, y), ones(3, 1), ones(3, 4)),
    "of_whole_numbers": lambda: held(lambda _, x: (x + x).double(), ones(2, 3, dtype=torch.int64)),
    "products_of_whole_numbers": lambda: held(
        lambda _, x, y: torch.mm(x, y), ones(2, 3, dtype=torch.int64), ones(3, 4, dtype=torch.int64)
    ),
    "half": lambda: held(
        lambda _, x, y: torch.mm(x, y), ones(2, 3, dtype=torch.bfloat16), ones(3, 4, dtype=torch.bfloat16)
    ),
    "attends": lambda: held(lambda _, q: attend(q, q, q), HEADS),
    "causal": lambda: held(lambda _, q: attend(q, q, q, is_causal=True), HEADS),
    "causal_of_more": lambda: held(lambda _, q, k: attend(q, k, k, is_causal=True), HEADS[:, :, :2], HEADS),
    "causal_of_one": lambda: held(
        lambda _, q, v: attend(q, q, v, is_causal=True), ones(1, 1, 5, 4), ones(1, 1, 5, 3)
    ),
    "grouped": lambda: held(lambda _, q, k: attend(q, k, k, enable_gqa=True), ones(2, 6, 5, 4), HEADS),
    # values wider than keys: PyTorch takes several operators on a CPU
    "wide": lambda: held(lambda _, q, v: attend(q, q, v), HEADS, ones(2, 3, 5, 7)),
    "in_inference": lambda: (nn.MultiheadAttention(4, 2, batch_first=True), (ones(2, 5, 4),) * 3),
}  # fmt: skip


def __getattr__(name: str) -> Callable[[], Any]:
    """The factory of this network."""
    if name in NETS:
        return NETS[name]
    raise AttributeError(name)
