"""Small networks for ultralytics-thop; a worker of its environment imports this file. Functions return a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Twice(nn.Module):
    """One layer under two parents."""

    def __init__(self) -> None:
        super().__init__()
        shared = nn.Linear(3, 4, bias=False)
        self.a, self.b = nn.Sequential(shared), nn.Sequential(shared)

    def forward(self, x: Any) -> Any:
        return self.a(x) + self.b(x)


class Products(nn.Sequential):
    """The same product of 2 x 3 and 3 x 5 three times, of which torch.mm is one; a sum; and a convolution as a function."""

    def forward(self, x: Any) -> Any:
        w = torch.ones(3, 5)
        y = x @ w + torch.matmul(x, w) + torch.mm(x, w)
        return functional.conv1d(y[None], torch.ones(1, 2, 1))


class Named(nn.Module):
    """A layer that gets its input by name."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 4, bias=False)

    def forward(self, x: Any) -> Any:
        return self.gru(input=x)[0]


class Packed(nn.Module):
    """Sequences of 5, 3 and 1 steps."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 4, bias=False)

    def forward(self, x: Any) -> Any:
        return self.gru(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 1])))[0].data


class Doubled(nn.Linear):
    """A subclass that does twice the work of its base, and a product of its own."""

    def forward(self, x: Any) -> Any:
        return super().forward(x) + super().forward(x) @ torch.ones(4, 4)


class Attention(nn.Module):
    """Multi-head attention as a module and as a function."""

    def __init__(self, function: bool) -> None:
        super().__init__()
        self.function = function
        self.attention = nn.MultiheadAttention(8, 4, bias=False)

    def forward(self, x: Any) -> Any:
        if not self.function:
            return self.attention(x, x, x)[0]
        m = self.attention
        return functional.multi_head_attention_forward(
            x, x, x, 8, 4, m.in_proj_weight, None, None, None, False, 0.0, m.out_proj.weight, None, training=False
        )[0]


class Mixed(nn.Module):
    """Two products of as many multiply-adds each, one with a bias."""

    def forward(self, x: Any) -> Any:
        w = torch.ones(3, 5)
        return functional.linear(x, w.t(), torch.ones(5)) + x @ w


class Integers(nn.Module):
    """A product of whole numbers."""

    def forward(self, x: Any) -> Any:
        return x * (torch.ones(2, 3, dtype=torch.long) @ torch.ones(3, 5, dtype=torch.long)).sum()


def twice() -> Any:
    return Twice(), torch.ones(2, 3)


def transposed() -> Any:
    return nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, bias=False), torch.ones(1, 4, 5, 5)


def products() -> Any:
    return Products(), torch.ones(2, 3)


def named() -> Any:
    return Named(), torch.ones(5, 2, 3)


def packed() -> Any:
    return Packed(), torch.ones(5, 3, 3)


def doubled() -> Any:
    return nn.Sequential(Doubled(3, 4, bias=False)), torch.ones(2, 3)


def attention() -> Any:
    return Attention(False), torch.ones(5, 2, 8)


def attention_function() -> Any:
    return Attention(True), torch.ones(5, 2, 8)


def mixed() -> Any:
    return Mixed(), torch.ones(2, 3)


def integers() -> Any:
    return Integers(), torch.ones(2, 3)


def gelu() -> Any:
    return nn.Sequential(nn.Linear(3, 4, bias=False), nn.GELU()), torch.ones(2, 3)


class Classifier(nn.Sequential):
    """A convolution that grows with the area, and a layer behind a pooling that does not."""

    def __init__(self, *stride: float) -> None:
        conv = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        super().__init__(conv, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 5, bias=False))
        if stride:
            self.stride = torch.tensor(stride)


class Pixels(nn.Module):
    """Every position of an image is multiplied with every other one, which grows with the square of the area."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 8, stride=8, bias=False)

    def forward(self, x: Any) -> Any:
        x = self.conv(x).flatten(2)
        return x.transpose(1, 2) @ x


class OneSize(nn.Module):
    """A model of images of one size: get_flops cannot run a smaller one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(3, 4, 8, stride=8, bias=False), nn.Linear(4 * 8 * 8, 5, bias=False)

    def forward(self, x: Any) -> Any:
        return self.out(self.conv(x).flatten(1))


def classifier() -> Any:
    return Classifier(), torch.ones(1, 3, 64, 128)


def with_stride() -> Any:
    return Classifier(8.0, 16.0, 64.0), torch.ones(1, 3, 64, 128)


def pixels() -> Any:
    return Pixels(), torch.ones(1, 3, 64, 64)


def one_size() -> Any:
    return OneSize(), torch.ones(1, 3, 64, 64)


def uneven() -> Any:
    return Classifier(), torch.ones(1, 3, 64, 80)


def two_images() -> Any:
    return Classifier(), torch.ones(2, 3, 64, 64)
