"""thop's hooks by hand, release by release. H, C and RN are the files of 0.1.1, as in rules.py; older releases have the hooks
in ``count_hooks.py`` and ``basic_hooks.py``.  A release's date, not its number, says which came first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from reconcile.core.causes import Cause
from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

AUG19, SEP19, DEC19, JAN20, MAY14, MAY24, JUN20, SEP21, NOV21, JUN22, JUL01, JUL13, SEP22 = RELEASES = (
    "0.0.23.post1908061459",
    "0.0.31.post1909230639",  # upsampling, with 13 for bilinear
    "0.0.31.post1912272122",  # 11, and a bias in Linear
    "0.0.31.post2001170342",  # 2 for a norm, 1 for an average
    "0.0.31.post2005141830",  # float64, Linear in MACs
    "0.0.31.post2005241907",  # recurrent layers
    "0.0.4.post2006111041",
    "0.0.4.post2109101452",  # Sequential
    "0.0.5.post2206100352",  # more norms, Softmax, PReLU
    "0.1.0.post2206102148",  # no bias, affine norms; 0.0.5 of that date is the same
    "0.1.0.post2207010342",  # windows that are no whole number
    "0.1.1.post2207130030",  # PixelShuffle
    "0.1.1.post2209072238",
)
NEW = RELEASES[RELEASES.index(JUN22) :]
OLD = RELEASES[: RELEASES.index(JUN22)]


def since(release: str, of: tuple[str, ...] = RELEASES) -> tuple[str, ...]:
    return tuple(r for r in of if RELEASES.index(r) >= RELEASES.index(release))


def before(release: str, of: tuple[str, ...] = RELEASES) -> tuple[str, ...]:
    return tuple(r for r in of if RELEASES.index(r) < RELEASES.index(release))


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
                    f"{NN}conv.{name}", [(2, 6, *image)], [(2, 8, *positions)], weight=weight, bias=bias, in_channels=6,
                    groups=2,
                )  # fmt: skip
                adds = 0 if bias is None else outputs
                yield Case(module, OLD, macs + adds, Work(mac=macs, add=adds))
                yield Case(module, NEW, macs, Work(mac=macs))


def norms() -> Iterator[Case]:
    """2 N; since 0.1 twice that with a scale and a shift, and before 2020 always."""
    flags = {"batchnorm.SyncBatchNorm": "affine", "normalization.LayerNorm": "elementwise_affine"}
    flags |= {f"{kind.lower()}.{kind}{d}d": "affine" for kind in ("BatchNorm", "InstanceNorm") for d in "123"}
    first = {"BatchNorm": JAN20, "SyncBatchNorm": MAY24, "InstanceNorm": NOV21, "LayerNorm": NOV21}
    for name, flag in flags.items():
        kind = name.partition(".")[2].rstrip("123d")
        plain, affine = (op(NN + name, [X], [X], **{flag: given}) for given in (False, True))
        yield Case(plain, NEW, 2 * N, Work(add=N, mul=N))
        yield Case(affine, NEW, 4 * N, Work(add=2 * N, mul=2 * N))
        for module in (plain, affine):
            yield Case(module, since(first[kind], OLD), 2 * N, Work(add=N, mul=N))
            if kind == "BatchNorm":
                yield Case(module, before(JAN20), 4 * N, Work(add=2 * N, mul=2 * N))
        if kind != "BatchNorm":
            yield none(name, *before(first[kind]))


def activations() -> Iterator[Case]:
    yield none("activation.PReLU", *before(NOV21))
    yield Case(op(f"{NN}activation.PReLU", [X], [X]), since(NOV21), N, Work(mul=N))
    yield none("activation.Softmax", *before(NOV21))
    # 10 rows of 6: an exp and a division each, and 5 adds a row.
    softmax = op(f"{NN}activation.Softmax", [X], [X], dim=1)
    yield Case(softmax, since(NOV21), 10 * (6 + 5 + 6), Work(special=60, add=50, div=60))
    yield Case(op(f"{NN}activation.LeakyReLU", [X], [X]), OLD, N, Work(mul=N))
    yield zero("activation.LeakyReLU", *NEW)
    for name in ("activation.ReLU", "activation.ReLU6", "dropout.Dropout"):
        yield zero(name, *RELEASES)
    for name, release in (
        ("padding.ZeroPad2d", MAY14),
        ("container.Sequential", SEP21),
        ("pixelshuffle.PixelShuffle", JUL13),
    ):
        yield none(name, *before(release))
        yield zero(name, *since(release))


def pools() -> Iterator[Case]:
    for d in (1, 2, 3):
        image, pooled = (6, 4, 9)[:d], (3, 2, 2)[:d]
        outputs = 2 * 3 * prod(pooled)
        shapes: tuple[list[Shape], list[Shape]] = [(2, 3, *image)], [(2, 3, *pooled)]
        # A division each, whatever the window; before 2020 its elements, too, but of one number only that number.
        for size, window in ((5, 5), ([5] * d, 5**d)):
            average = op(f"{NN}pooling.AvgPool{d}d", *shapes, kernel_size=size)
            yield Case(average, since(JAN20), outputs, Work(div=outputs))
            yield Case(average, before(JAN20), outputs * (window + 1), Work(add=outputs * window, div=outputs))
        for kind in ("MaxPool", "AdaptiveMaxPool"):
            yield zero(f"pooling.{kind}{d}d", *RELEASES)
        # A window is the ratio of the sizes, of which 9 / 2 was 4 before July 2022; and 1 for the division.
        adaptive = op(f"{NN}pooling.AdaptiveAvgPool{d}d", *shapes, output_size=list(pooled))
        for releases, window in ((before(JUL01), (2, 4, 16)[d - 1]), (since(JUL01), (2, 4, 18)[d - 1])):
            yield Case(adaptive, releases, outputs * (window + 1), Work(add=outputs * window, div=outputs))
        # One size for every axis.
        square = op(f"{NN}pooling.AdaptiveAvgPool{d}d", [(2, 3, *[7] * d)], [(2, 3, *[2] * d)], output_size=2)
        outputs, window = 6 * 2**d, 3**d
        yield Case(square, before(JUL01), outputs * (window + 1), Work(add=outputs * window, div=outputs))
    # 7 / 3 of a window is 2.33: 6 outputs have 14 elements in all, and 6 divisions.
    uneven = op(f"{NN}pooling.AdaptiveAvgPool1d", [(1, 2, 7)], [(1, 2, 3)])
    yield Case(uneven, since(JUL01), 14 + 6, Work(add=14, div=6))
    cut = op(f"{NN}pooling.AdaptiveAvgPool2d", [(1, 1, 5, 5)], [(1, 1, 3, 3)])
    yield Case(cut, since(JUL01), 34, Work(add=25, div=9))  # 9 * (25 / 9 + 1)


def upsamplings() -> Iterator[Case]:
    """None of nearest before 0.1, though there was a hook; 7 adds for bilinear until October 2019."""
    outputs = 2 * 6 * 10
    for name in ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"):
        for mode, each in (("linear", 5), ("bilinear", 6 + 5), ("bicubic", 128 + 96 + 35)):
            module = op(f"{NN}upsampling.{name}", [X], [(2, 6, 10)], mode=mode)
            yield Case(module, since(DEC19), outputs * each, Work(mul=outputs * each))
            first = 6 + 7 if mode == "bilinear" else each
            yield Case(module, (SEP19,), outputs * first, Work(mul=outputs * first))
        nearest = op(f"{NN}upsampling.{name}", [X], [(2, 6, 10)], mode="nearest")
        yield Case(nearest, NEW, outputs, Work(mul=outputs))
        yield Case(nearest, since(SEP19, OLD), missed=Cause.OP_NOT_COUNTED)
        trilinear = op(f"{NN}upsampling.{name}", [X], [(2, 6, 10)], mode="trilinear")
        yield Case(trilinear, since(SEP19), missed=Cause.OP_NOT_COUNTED)
        yield none(f"upsampling.{name}", AUG19)


def linears() -> Iterator[Case]:
    """7 inputs to each of 6 outputs; until April 2020 multiplies and adds apart, the later releases a MAC of both."""
    for bias in (None, [3]):
        module = op(f"{NN}linear.Linear", [(2, 7)], [(2, 3)], in_features=7, bias=bias)
        flops = 6 * (7 + 6 + (0 if bias is None else 1))
        yield Case(module, (DEC19, JAN20), flops, Work(mac=flops))
        yield Case(module, (AUG19, SEP19), 6 * (7 + 6), Work(mac=6 * (7 + 6)))
        yield Case(module, since(MAY14), 6 * 7, Work(mac=6 * 7))


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
        yield none(f"rnn.{kind}", *before(MAY24))
        yield none(f"rnn.{kind}Cell", *before(MAY24))
        for bias in (False, True):
            cell = op(f"{NN}rnn.{kind}Cell", [(2, 4), (2, 3)], [(2, 3)], **shared, bias=bias)
            yield Case(cell, since(MAY24), 2 * totals(kind, 4, 3, bias), step(kind, 4, 3, bias) * 2)

            def whole(*inputs, bias=bias, kind=kind, **attrs):
                plain = {"batch_first": False, "bidirectional": False, "num_layers": 1, "packed_batch": 0}
                return op(f"{NN}rnn.{kind}", inputs, [(5, 2, 3)], **{**shared, **plain, "bias": bias, **attrs})

            once, total = step(kind, 4, 3, bias) * 10, 10 * totals(kind, 4, 3, bias)
            yield Case(whole((5, 2, 4)), since(MAY24), total, once)
            yield Case(whole((2, 5, 4), batch_first=True), since(MAY24), total, once)
            packed = whole((8, 4), (5,), packed_batch=2)  # 8 rows of 2 sequences are counted as 5 steps of 2
            yield Case(packed, since(SEP21), total, once)
            # The second layer takes both directions' units of the first.
            deep = whole((5, 2, 4), bidirectional=True, num_layers=2)
            layers = step(kind, 4, 3, bias) + step(kind, 6, 3, bias)
            both = 2 * (totals(kind, 4, 3, bias) + totals(kind, 6, 3, bias))
            yield Case(deep, since(MAY24), 10 * both, layers * 20)


def float32_sums() -> Iterator[Case]:
    """From 2^24 on, float32 holds every second number, and from 2^25 on every fourth; a tie goes to the even one."""
    edge = 1 << 24
    for addends, stray in (
        ([[7, 2], [edge - 14, 1]], 0),
        ([[edge, 1], [1, 3]], -3),  # 2^24 + 1 is a tie each time
        ([[3, 1], [edge, 1]], 1),  # 2^24 + 3 to 2^24 + 4
        ([[edge + 1, 1]], -1),  # an amount is rounded before it is added
        ([[2 * edge, 1], [3, 2]], 2),  # 2^25 + 3 to 2^25 + 4, and again
    ):
        sums = op("thop.float32", [], [], addends=addends)
        yield Case(sums, (AUG19, SEP19, DEC19, JAN20), stray, Work(mac=stray))
    yield Case(op("thop.float32", [], []), since(MAY14))


CASES = (*float32_sums(), *convolutions(), *norms(), *activations(), *pools(), *upsamplings(), *linears(), *recurrent())

FAMILIES = {"thop": (RELEASES, CASES)}
