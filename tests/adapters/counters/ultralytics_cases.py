"""ultralytics-thop's rules by hand: B = thop/vision/basic_hooks.py, C = calc_func.py, P = thop/profile.py, RN = rnn_hooks.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconcile.core.causes import Cause
from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("2.2.3",)

X = (2, 6, 5, 4)
N = 2 * 6 * 5 * 4


def module(work: Work, total: int, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape], **attrs: Any) -> Case:
    return Case(op(f"torch.nn.modules.{name}", inputs, outputs, **attrs), RELEASES, total, work)


def function(macs: int, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape], **attrs: Any) -> Case:
    return Case(op(f"torch.{name}", inputs, outputs, **attrs), RELEASES, macs, Work(mac=macs))


def layers() -> Iterator[Case]:
    # 2 groups: each output element is a sum of 6 / 2 channels x 3 x 2 weights.
    out = (2, 8, 3, 3)
    yield module(Work(mac=144 * 18), 144 * 18, "conv.Conv2d", [X], [out], weight=[8, 3, 3, 2], groups=2)
    for axes, x, y in ((1, (2, 6, 5), (2, 8, 3)), (3, (2, 6, 5, 4, 3), (2, 8, 3, 3, 1))):
        macs = 2 * 8 * (3 if axes == 1 else 9) * 6 * 3**axes
        yield module(Work(mac=macs), macs, f"conv.Conv{axes}d", [x], [y], weight=[8, 6, *[3] * axes], groups=1)
    yield module(Work(mac=72 * 6 * 9), 72 * 6 * 9, "conv.Conv2d", [X[1:]], [out[1:]], weight=[8, 6, 3, 3], groups=1)
    # Transposed, each of the 240 input elements is multiplied with 4 channels of its group x 3 x 2 weights.
    wide = (2, 8, 7, 5)
    yield module(Work(mac=N * 4 * 6), 5_760, "conv.ConvTranspose2d", [X], [wide], weight=[6, 4, 3, 2], groups=2)
    for axes, x, y in ((1, (2, 6, 5), (2, 8, 7)), (3, (2, 6, 5, 4, 3), (2, 8, 7, 6, 5))):
        macs = 2 * 6 * (5 if axes == 1 else 60) * 8 * 3**axes
        weight = [6, 8, *[3] * axes]
        yield module(Work(mac=macs), macs, f"conv.ConvTranspose{axes}d", [x], [y], weight=weight, groups=1)
    yield module(Work(add=2 * N, mul=2 * N), 4 * N, "batchnorm._NormBase", [X], [X], affine=True)
    yield module(Work(add=N, mul=N), 2 * N, "batchnorm._NormBase", [X], [X], affine=False)
    for name in ("LayerNorm", "RMSNorm"):
        yield module(Work(add=N, mul=N), 2 * N, f"normalization.{name}", [X], [X], elementwise_affine=False)
        yield module(Work(add=2 * N, mul=2 * N), 4 * N, f"normalization.{name}", [X], [X], elementwise_affine=True)
    yield module(Work(add=2 * N, mul=2 * N), 4 * N, "normalization.GroupNorm", [X], [X], affine=True)
    yield module(Work(mul=N), N, "activation.PReLU", [X], [X])
    # 40 rows of 6 channels: an exponential, a division and all but one addition of each element.
    rows = Work(special=N, div=N, add=N - 40)
    yield module(rows, 3 * N - 40, "activation.Softmax", [X], [X], dim=1)
    yield module(rows, 3 * N - 40, "activation.Softmax", [X], [X])  # no axis given: the channels of a 4-D tensor
    yield module(
        Work(special=30, div=30, add=30 - 15), 75, "activation.Softmax", [(2, 3, 5)], [(2, 3, 5)]
    )  # of a 3-D: 0
    yield module(rows, 3 * N - 40, "activation.Softmax2d", [X], [X])
    yield module(rows + Work(mul=N), 4 * N - 40, "activation.Softmin", [X], [X], dim=1)
    yield module(rows + Work(special=40), 3 * N, "activation.LogSoftmax", [X], [X], dim=1)
    # Windows of 3 with padding 1 and step 2 over 5 rows: 3 + 3 + 3 with the padding, 2 + 3 + 2 without; over 4 columns
    # two windows: 3 + 3, or 2 + 3.
    for included, sums in ((True, 12 * 9 * 6), (False, 12 * 7 * 5)):
        windows = {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": included}
        work = Work(add=sums, div=72)
        yield module(work, sums + 72, "pooling.AvgPool2d", [X], [(2, 6, 3, 2)], **windows)
    plain = {"stride": [2], "padding": [0], "count_include_pad": True}
    yield module(Work(add=24, div=12), 36, "pooling.AvgPool1d", [(2, 3, 5)], [(2, 3, 2)], kernel_size=[2], **plain)
    plain = {"stride": 2, "padding": 0, "count_include_pad": True}
    cube, small = (2, 3, 4, 4, 4), (2, 3, 2, 2, 2)
    yield module(Work(add=384, div=48), 432, "pooling.AvgPool3d", [cube], [small], kernel_size=2, **plain)
    # 5 rows into 3: windows of 2, 3 and 2; 4 columns into 2: 2 and 2.
    work = Work(add=12 * 7 * 4, div=72)
    yield module(work, 12 * 7 * 4 + 72, "pooling.AdaptiveAvgPool2d", [X], [(2, 6, 3, 2)])
    yield module(Work(add=12 * 7, div=36), 120, "pooling.AdaptiveAvgPool1d", [X[:3]], [(2, 6, 3)])
    yield module(Work(add=384, div=48), 432, "pooling.AdaptiveAvgPool3d", [cube], [small])
    big = (2, 6, 10, 8)
    for mode, each in (("linear", 5), ("bilinear", 11), ("bicubic", 259), ("trilinear", 31)):
        yield module(Work(mul=each * 4 * N), each * 4 * N, "upsampling.Upsample", [X], [big], mode=mode)
    yield Case(
        op("torch.nn.modules.upsampling.Upsample", [X], [big], mode="nearest"), RELEASES, missed=Cause.OP_NOT_COUNTED
    )
    yield module(Work(mac=N * 7), N * 7, "linear.Linear", [X], [(2, 6, 5, 7)], in_features=4, bias=[7])
    # Of each of 2 x 5 outputs: 4 sums over 3 features, and one over these 4.
    both = {"in1_features": 3, "in2_features": 4}
    yield module(Work(mac=10 * 16), 160, "linear.Bilinear", [(2, 3), (2, 4)], [(2, 5)], **both)


def recurrent() -> Iterator[Case]:
    i, h = 3, 4
    for kind, gates, add, mul in (("RNN", 1, 0, 0), ("GRU", 3, 1, 3), ("LSTM", 4, 1, 3)):
        for bias in (False, True):
            step = Work(mac=gates * h * (i + h), add=gates * h * (3 if bias else 1) + add * h, mul=mul * h)
            stacked = Work(mac=gates * h * (2 * h + h), add=step.add, mul=step.mul)
            total = step.mac + step.add + step.mul
            given = {"input_size": i, "hidden_size": h, "bias": bias}
            yield module(step * 2, 2 * total, f"rnn.{kind}Cell", [(2, i)], [(2, h)], **given)
            yield module(step, total, f"rnn.{kind}Cell", [(i,)], [(h,)], **given)
            one = {**given, "num_layers": 1, "bidirectional": False}
            yield module(step * 10, 10 * total, f"rnn.{kind}", [(5, 2, i)], [(5, 2, h)], **one)
            yield module(step * 5, 5 * total, f"rnn.{kind}", [(5, i)], [(5, h)], **one)  # without a batch, or packed
            two = {**given, "num_layers": 2, "bidirectional": True}
            work = (step + stacked) * 2 * 10
            yield module(work, work.mac + work.add + work.mul, f"rnn.{kind}", [(5, 2, i)], [(5, 2, 2 * h)], **two)
    # Projected to 2: four gates read 2 of the state, and 4 x 2 products make it.
    step = Work(mac=4 * h * (i + 2) + h * 2, add=4 * h + h, mul=3 * h)
    given = {"input_size": i, "hidden_size": h, "bias": False, "num_layers": 1, "bidirectional": False, "proj_size": 2}
    yield module(step * 10, 10 * (88 + 20 + 12), "rnn.LSTM", [(5, 2, i)], [(5, 2, 2)], **given)


def attention() -> Iterator[Case]:
    # 3 queries and 5 keys of width 8, twice: the queries' and the output's projection, the keys' and the values', and two
    # products for 3 x 5 pairs; softmax of 4 heads' 3 rows of 5.
    macs = 2 * (2 * 3 * 8 * 8 + 2 * 5 * 8 * 8 + 2 * 3 * 5 * 8)
    work = Work(mac=macs, special=120, div=120, add=120 - 24)
    sizes = {"embed_dim": 8, "num_heads": 4, "bias_k": False, "add_zero_attn": False}
    module_sizes = {**sizes, "kdim": 8, "vdim": 8}
    first = [(2, 3, 8), (2, 5, 8), (2, 5, 8)]
    name = "activation.MultiheadAttention"
    weights = (2, 3, 5)
    yield module(work, macs + 336, name, first, [(2, 3, 8), weights], batch_first=True, **module_sizes)
    yield module(work, macs + 336, name, first, [(2, 3, 8)], batch_first=True, **module_sizes)
    turned = [(3, 2, 8), (5, 2, 8), (5, 2, 8)]
    yield module(work, macs + 336, name, turned, [(3, 2, 8), weights], batch_first=False, **module_sizes)
    yield Case(
        op("torch.multi_head_attention_forward", turned, [(3, 2, 8), weights], **sizes), RELEASES, macs + 336, work
    )
    # One more key for the pairs and the softmax, and none for the projections.
    more = 2 * (2 * 3 * 8 * 8 + 2 * 5 * 8 * 8 + 2 * 3 * 6 * 8)
    work = Work(mac=more, special=144, div=144, add=144 - 24)
    appended = {**module_sizes, "bias_k": True}
    yield module(work, more + 408, name, first, [(2, 3, 8)], batch_first=True, **appended)


def functions() -> Iterator[Case]:
    yield function(2 * 3 * 5, "matmul", [(2, 3), (3, 5)], [(2, 5)])
    yield function(7 * 2 * 3 * 5, "matmul", [(2, 3), (7, 3, 5)], [(7, 2, 5)])
    yield function(3, "matmul", [(3,), (3,)], [()])
    yield function(4 * 2 * 3 * 5, "bmm", [(4, 2, 3), (4, 3, 5)], [(4, 2, 5)])
    yield function(4 * 3 * 5, "linear", [(4, 3), (5, 3), (5,)], [(4, 5)])
    query, key, value = (2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)
    pairs = 2 * 4 * 5 * 7
    yield function(pairs * 8 + pairs * 6, "scaled_dot_product_attention", [query, key, value], [(2, 4, 5, 6)])
    yield function(2 * 3 * 4 * 5, "einsum", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], equation="bij,bjk->bik")
    yield function(3 * 4 * 5, "einsum", [(3, 4), (4, 5)], [(3, 5)], equation="ij,jk")
    yield function(2 * 3 * 4 * 5, "einsum", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], equation="...ij,...jk->...ik")
    # k is in the first operand alone and is summed there before the product of i and j runs.
    yield function(3 * 4, "einsum", [(3, 4, 5), (4,)], [(3,)], equation="ijk,j->i")
    three = op("torch.einsum", [(2, 3), (3, 4), (4, 5)], [(2, 5)], equation="ij,jk,kl->il")
    yield Case(three, RELEASES, missed=Cause.OP_NOT_COUNTED)


ZERO = (
    *(f"padding._{kind}PadNd" for kind in ("Constant", "Reflection", "Replication", "Circular")), "dropout._DropoutNd",
    *(f"activation.{name}" for name in ("ReLU", "ReLU6", "LeakyReLU")),
    *(f"pooling.{kind}MaxPool{axes}d" for kind in ("", "Adaptive") for axes in (1, 2, 3)),
    *(f"pooling.FractionalMaxPool{axes}d" for axes in (2, 3)), "pooling._MaxUnpoolNd", "linear.Identity",
    "flatten.Flatten", "flatten.Unflatten", "fold.Unfold", "pixelshuffle.PixelShuffle", "pixelshuffle.PixelUnshuffle",
    "channelshuffle.ChannelShuffle", "sparse.Embedding",
)  # fmt: skip

CASES = (
    *layers(), *recurrent(), *attention(), *functions(),
    *(Case(op(f"torch.nn.modules.{name}", [X], [X]), RELEASES, missed=Cause.OP_NOT_COUNTED) for name in ZERO),
)  # fmt: skip

FAMILIES = {"ultralytics-thop": (RELEASES, CASES)}
