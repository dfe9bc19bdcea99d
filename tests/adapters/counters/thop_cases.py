"""thop's hooks by hand, release by release. H, C and RN are the files of 0.1.1, as in rules.py; the older two releases have
``basic_hooks.py`` (0.0.31.post2005241907) and ``count_hooks.py`` (0.0.31.post2001170342).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from reconcile.core.causes import Cause
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

FIRST, SECOND, THIRD = RELEASES = ("0.0.31.post2001170342", "0.0.31.post2005241907", "0.1.1.post2209072238")
NN = "torch.nn.modules."
X = (2, 6, 5)
N = 2 * 6 * 5


def zero(name: str, *releases: str) -> Case:
    """A hook that adds 0."""
    return Case(op(NN + name, [X], [X]), releases, missed=Cause.OP_NOT_COUNTED)


def none(name: str, *releases: str) -> Case:
    """A class without a hook."""
    return Case(op(NN + name, [X], [X]), releases)


def convolutions() -> Iterator[Case]:
    """6 channels to 8 in 2 groups: every output takes 3 channels times the kernel, until 0.1 and 1 for a bias."""
    for rank in (1, 2, 3):
        image, kernel, positions = (9, 8, 7)[:rank], (3, 2, 2)[:rank], (7, 7, 6)[:rank]
        outputs = 2 * 8 * prod(positions)
        macs = outputs * (6 // 2) * prod(kernel)
        for name, weight in ((f"Conv{rank}d", [8, 3, *kernel]), (f"ConvTranspose{rank}d", [6, 4, *kernel])):
            for bias in (None, [8]):
                module = op(
                    f"{NN}conv.{name}",
                    [(2, 6, *image)],
                    [(2, 8, *positions)],
                    weight=weight,
                    bias=bias,
                    in_channels=6,
                    groups=2,
                )
                adds = 0 if bias is None else outputs
                yield Case(module, (FIRST, SECOND), macs + adds, Work(mac=macs, add=adds))
                yield Case(module, (THIRD,), macs, Work(mac=macs))


def norms() -> Iterator[Case]:
    """2 N; since 0.1 twice that with a scale and a shift."""
    flags = {"batchnorm.SyncBatchNorm": "affine", "normalization.LayerNorm": "elementwise_affine"}
    flags |= {f"{kind.lower()}.{kind}{d}d": "affine" for kind in ("BatchNorm", "InstanceNorm") for d in "123"}
    for name, flag in flags.items():
        plain, affine = (op(NN + name, [X], [X], **{flag: given}) for given in (False, True))
        yield Case(plain, (THIRD,), 2 * N, Work(add=N, mul=N))
        yield Case(affine, (THIRD,), 4 * N, Work(add=2 * N, mul=2 * N))
        known = {"BatchNorm": (FIRST, SECOND), "SyncBatchNorm": (SECOND,)}
        before = known.get(name.partition(".")[2].rstrip("123d"), ())
        for module in (plain, affine) if before else ():
            yield Case(module, before, 2 * N, Work(add=N, mul=N))
        yield none(name, *(release for release in (FIRST, SECOND) if release not in before))


def activations() -> Iterator[Case]:
    yield none("activation.PReLU", FIRST, SECOND)
    yield Case(op(f"{NN}activation.PReLU", [X], [X]), (THIRD,), N, Work(mul=N))
    yield none("activation.Softmax", FIRST, SECOND)
    # 10 rows of 6: an exp and a division each, and 5 adds a row.
    softmax = op(f"{NN}activation.Softmax", [X], [X], dim=1)
    yield Case(softmax, (THIRD,), 10 * (6 + 5 + 6), Work(special=60, add=50, div=60))
    yield Case(op(f"{NN}activation.LeakyReLU", [X], [X]), (FIRST, SECOND), N, Work(mul=N))
    yield zero("activation.LeakyReLU", THIRD)
    for name in ("activation.ReLU", "activation.ReLU6", "dropout.Dropout"):
        yield zero(name, *RELEASES)
    yield none("padding.ZeroPad2d", FIRST)
    yield zero("padding.ZeroPad2d", SECOND, THIRD)
    for name in ("container.Sequential", "pixelshuffle.PixelShuffle"):
        yield none(name, FIRST, SECOND)
        yield zero(name, THIRD)


def pools() -> Iterator[Case]:
    for d in (1, 2, 3):
        image, pooled = (6, 4, 9)[:d], (3, 2, 2)[:d]
        outputs = 2 * 3 * prod(pooled)
        average = op(f"{NN}pooling.AvgPool{d}d", [(2, 3, *image)], [(2, 3, *pooled)])
        yield Case(average, RELEASES, outputs, Work(div=outputs))  # a division each, whatever the window
        for kind in ("MaxPool", "AdaptiveMaxPool"):
            yield zero(f"pooling.{kind}{d}d", *RELEASES)
        # A window is the ratio of the sizes, of which 9 / 2 was 4 before 0.1; and 1 for the division.
        adaptive = op(f"{NN}pooling.AdaptiveAvgPool{d}d", [(2, 3, *image)], [(2, 3, *pooled)], output_size=list(pooled))
        for releases, window in (((FIRST, SECOND), (2, 4, 16)[d - 1]), ((THIRD,), (2, 4, 18)[d - 1])):
            yield Case(adaptive, releases, outputs * (window + 1), Work(add=outputs * window, div=outputs))
        # One size for every axis.
        square = op(f"{NN}pooling.AdaptiveAvgPool{d}d", [(2, 3, *[7] * d)], [(2, 3, *[2] * d)], output_size=2)
        outputs, window = 6 * 2**d, 3**d
        yield Case(square, (FIRST, SECOND), outputs * (window + 1), Work(add=outputs * window, div=outputs))
    # 7 / 3 of a window is 2.33: 6 outputs have 14 elements in all, and 6 divisions.
    uneven = op(f"{NN}pooling.AdaptiveAvgPool1d", [(1, 2, 7)], [(1, 2, 3)])
    yield Case(uneven, (THIRD,), 14 + 6, Work(add=14, div=6))
    cut = op(f"{NN}pooling.AdaptiveAvgPool2d", [(1, 1, 5, 5)], [(1, 1, 3, 3)])
    yield Case(cut, (THIRD,), 34, Work(add=25, div=9))  # 9 * (25 / 9 + 1)


def upsamplings() -> Iterator[Case]:
    """None of nearest before 0.1, though there was a hook."""
    outputs = 2 * 6 * 10
    for name in ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"):
        for mode, each in (("nearest", 1), ("linear", 5), ("bilinear", 6 + 5), ("bicubic", 128 + 96 + 35)):
            module = op(f"{NN}upsampling.{name}", [X], [(2, 6, 10)], mode=mode)
            releases = (THIRD,) if mode == "nearest" else RELEASES
            yield Case(module, releases, outputs * each, Work(mul=outputs * each))
            if mode == "nearest":
                yield Case(module, (FIRST, SECOND), missed=Cause.OP_NOT_COUNTED)
        trilinear = op(f"{NN}upsampling.{name}", [X], [(2, 6, 10)], mode="trilinear")
        yield Case(trilinear, RELEASES, missed=Cause.OP_NOT_COUNTED)


def linears() -> Iterator[Case]:
    """7 inputs to each of 6 outputs; the first release has multiplies and adds apart, the later ones a MAC of both."""
    for bias in (None, [3]):
        module = op(f"{NN}linear.Linear", [(2, 7)], [(2, 3)], in_features=7, bias=bias)
        flops = 6 * (7 + 6 + (0 if bias is None else 1))
        yield Case(module, (FIRST,), flops, Work(mac=flops))
        yield Case(module, (SECOND, THIRD), 6 * 7, Work(mac=6 * 7))


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
BEYOND = {"RNN": (0, 0), "GRU": (1, 3), "LSTM": (1, 3)}
"""Adds and multiplies, in units of H, beside the gates: r * h and the new state; c and h."""


def step(kind: str, inputs: int, hidden: int, bias: bool) -> Work:
    """A step: H (I + H) + H for each gate, 2 H more with biases, and the products and the sum between the gates."""
    gates, (adds, products) = GATES[kind], BEYOND[kind]
    each = 3 if bias else 1
    return Work(
        mac=gates * hidden * (inputs + hidden), add=(gates * each + adds) * hidden, mul=products * hidden
    )  # fmt: skip


def totals(kind: str, inputs: int, hidden: int, bias: bool) -> int:
    """The same as thop writes it (RN:6, RN:24, RN:56)."""
    gate = hidden * (inputs + hidden) + hidden + (2 * hidden if bias else 0)
    return GATES[kind] * gate + {"RNN": 0, "GRU": hidden + 3 * hidden, "LSTM": 3 * hidden + hidden}[kind]


def recurrent() -> Iterator[Case]:
    """5 steps of 2 rows, 4 inputs and 3 units."""
    shared = {"input_size": 4, "hidden_size": 3}
    for kind in GATES:
        yield none(f"rnn.{kind}", FIRST)
        yield none(f"rnn.{kind}Cell", FIRST)
        for bias in (False, True):
            cell = op(f"{NN}rnn.{kind}Cell", [(2, 4), (2, 3)], [(2, 3)], **shared, bias=bias)
            yield Case(cell, (SECOND, THIRD), 2 * totals(kind, 4, 3, bias), step(kind, 4, 3, bias) * 2)

            def whole(*inputs, bias=bias, kind=kind, **attrs):
                plain = {"batch_first": False, "bidirectional": False, "num_layers": 1, "packed_batch": 0}
                return op(f"{NN}rnn.{kind}", inputs, [(5, 2, 3)], **{**shared, **plain, "bias": bias, **attrs})

            once, total = step(kind, 4, 3, bias) * 10, 10 * totals(kind, 4, 3, bias)
            yield Case(whole((5, 2, 4)), (SECOND, THIRD), total, once)
            yield Case(whole((2, 5, 4), batch_first=True), (SECOND, THIRD), total, once)
            packed = whole((8, 4), (5,), packed_batch=2)  # 8 rows of 2 sequences are counted as 5 steps of 2
            yield Case(packed, (THIRD,), total, once)
            # The second layer takes both directions' units of the first.
            deep = whole((5, 2, 4), bidirectional=True, num_layers=2)
            layers = step(kind, 4, 3, bias) + step(kind, 6, 3, bias)
            both = 2 * (totals(kind, 4, 3, bias) + totals(kind, 6, 3, bias))
            yield Case(deep, (SECOND, THIRD), 10 * both, layers * 20)


CASES = (
    *convolutions(),
    *norms(),
    *activations(),
    *pools(),
    *upsamplings(),
    *linears(),
    *recurrent(),
)
