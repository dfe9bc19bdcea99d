"""Rules of thop: what its hooks count, by the module's exact class. Unit MAC; norms, pools, gates and some biases add to it.

P = thop/profile.py, H = thop/vision/basic_hooks.py, C = thop/vision/calc_func.py, RN = thop/rnn_hooks.py; lines of
0.1.1.post2209072238.  ``N``: elements of the input, ``O``: of the output.
"""

from __future__ import annotations

from packaging.version import Version

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..float32_sums import float32_sum
from ..rule_parts import (
    all_layers,
    by_axes,
    classes,
    elements_in,
    elements_out,
    one_step,
    per_input,
    per_output,
    thop_step,
    two_or_four,
)
from ..rulebook import NotCounted, RuleBook, dims
from . import COUNTERS

UNDATED = ((Version("0.1.1"), "2207130030"), (Version("0.1"), "2206102148"))
"""The dates of the first releases of a number, for a number without a date; before 0.1, the order starts with it."""


def by_date(version: Version) -> Version:
    """The place of a release in the order in which thop's releases came out: 0.0.4 and 0.0.5 came after most of 0.0.31.

    Its date follows its number (``0.0.31.post2005241907``), up to the minute or, once, the day.
    """
    date = "" if version.post is None else str(version.post)
    if len(date) in (6, 10):
        return Version(date.ljust(10, "9"))
    return Version(next((first for release, first in UNDATED if version >= release), "0"))


BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {
        "P": "thop/profile.py",
        "H": "thop/vision/basic_hooks.py",
        "C": "thop/vision/calc_func.py",
        "RN": "thop/rnn_hooks.py",
        "OLD": "thop/vision/basic_hooks.py (0.0.31; count_hooks.py before)",
        "COUNTER": "thop/vision/counter.py (0.0.5.post2206100352)",
        "OLDEST": "thop/count_hooks.py (0.0.31.post2001170342)",
        "FIRST": "thop/count_hooks.py (0.0.31.post1909230639)",
        "SUM": "thop/profile.py (0.0.31.post2001170342)",
    },
    place=by_date,
)
# Every release on the index was read, from 0.0.23.post1908061459 on: the hooks of those before set a module's count and do
# not add to it. Ranges are by date (by_date): 0.0.5.post2206102148 and 0.1.0.post2206102148 are the same files.
FLOPS = "<0.0.31.post2004070130"  # Linear in FLOPs, norms by 4 until January 2020, float32
MACS = ">=0.0.31.post2004070130"
FIRST = "<0.0.31.post2001170342"
SINCE_RNN = ">=0.0.31.post2005241907"
OLD = "<0.1"
OLD_SINCE_2001 = ">=0.0.31.post2001170342,<0.1"
OLD_SINCE_RNN = ">=0.0.31.post2005241907,<0.1"
MORE_NORMS = ">=0.0.5.post2206100352,<0.1"
SINCE_MORE_NORMS = ">=0.0.5.post2206100352"
NEW = ">=0.1"


rule = BOOK.rule

_CONV = by_axes("conv", "Conv", "ConvTranspose")


@rule(*_CONV, source="H:22, C:28", formula="O (in_channels // groups) K, bias ignored", versions=NEW)
def _conv(op: Op) -> Work:
    channels = dims(op.inputs[0].shape)[1]
    return Work(mac=elements_out(op) * (channels // op.attrs["groups"]) * prod(op.attrs["weight"][2:]))


@rule(*_CONV, source="OLD:22", formula="O (in_channels // groups K + 1 for a bias)", versions=OLD)
def _conv_with_bias(op: Op) -> Work:
    kernel = prod(op.attrs["weight"][2:])
    o = elements_out(op)
    macs = o * (op.attrs["in_channels"] // op.attrs["groups"]) * kernel
    return Work(mac=macs, add=0 if op.attrs["bias"] is None else o)


_NORMS = (
    *by_axes("batchnorm", "BatchNorm"),
    *classes("batchnorm", "SyncBatchNorm"),
    *by_axes("instancenorm", "InstanceNorm"),
    *classes("normalization", "LayerNorm"),
)


rule(*_NORMS, source="H:60, C:43", formula="2N, 4N if affine", versions=NEW)(two_or_four)
_BATCH_NORMS = by_axes("batchnorm", "BatchNorm")


for _classes, _source, _versions in (
    (_BATCH_NORMS, "OLD:48", OLD_SINCE_2001),
    (classes("batchnorm", "SyncBatchNorm"), "OLD:48", OLD_SINCE_RNN),
    (_NORMS[4:], "COUNTER:17", MORE_NORMS),
):
    rule(*_classes, source=_source, formula="2N", versions=_versions)(per_input(add=1, mul=1))
rule(*_BATCH_NORMS, source="FIRST:39", formula="4N", versions=FIRST)(per_input(add=2, mul=2))
rule(*classes("activation", "PReLU"), source="H:82", formula="N", versions=SINCE_MORE_NORMS)(per_input(mul=1))


@rule(
    *classes("activation", "Softmax"), source="H:98, C:57", formula="rows (3 features - 1)", versions=SINCE_MORE_NORMS
)
def _softmax(op: Op) -> Work:
    n, features = elements_in(op), dims(op.inputs[0].shape)[op.attrs["dim"]]
    rows = n // features
    return Work(special=rows * features, add=rows * (features - 1), div=rows * features)


_AVERAGES = by_axes("pooling", "AvgPool")


rule(*_AVERAGES, source="H:106, C:65", formula="O", versions=">=0.0.31.post2001170342")(per_output(div=1))


@rule(*_AVERAGES, source="FIRST:69", formula="O (prod(kernel_size as it was given) + 1)", versions=FIRST)
def _avg_pool_of_its_windows(op: Op) -> Work:
    """A kernel size given as one number is taken once, whatever the number of axes."""
    window, o = op.attrs["kernel_size"], elements_out(op)
    return Work(add=o * (prod(window) if isinstance(window, (list, tuple)) else window), div=o)


_ADAPTIVE = by_axes("pooling", "AdaptiveAvgPool")


@rule(*_ADAPTIVE, source="H:114, C:69", formula="int(O (prod(in / out) + 1))", versions=">=0.1.0.post2207010342")
def _adaptive_pool(op: Op) -> Work:
    window = 1.0  # thop divides in float64 and truncates the product; so does this
    for before, after in zip(dims(op.inputs[0].shape)[2:], dims(op.outputs[0].shape)[2:], strict=False):
        window *= before / after
    o = elements_out(op)
    return Work(add=int((window + 1) * o) - o, div=o)


@rule(*_ADAPTIVE, source="OLD:91", formula="O (prod(in // out) + 1)", versions="<0.1.0.post2207010342")
def _adaptive_pool_of_whole_windows(op: Op) -> Work:
    spatial, pooled = dims(op.inputs[0].shape)[2:], dims(op.outputs[0].shape)[2:]
    o = elements_out(op)
    return Work(add=o * prod([size // out for size, out in zip(spatial, pooled, strict=False)]), div=o)


_UPSAMPLE = {"nearest": 1, "linear": 5, "bilinear": 11, "bicubic": 224 + 35}
_UPSAMPLINGS = classes("upsampling", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d")


@rule(
    *_UPSAMPLINGS,
    source="H:125, C:75",
    formula="nearest O, linear 5 O, bilinear 11 O, bicubic 259 O, else 0",
    versions=NEW,
)
def _upsample(op: Op) -> Work:
    mode = op.attrs["mode"]
    if mode not in _UPSAMPLE:
        raise NotCounted(Cause.OP_NOT_COUNTED, f"thop takes upsampling mode {mode} as zero")
    return Work(mul=_UPSAMPLE[mode] * elements_out(op))


@rule(
    *_UPSAMPLINGS,
    source="OLD:103",
    formula="linear 5 O, bilinear 11 O, bicubic 259 O, else 0",
    versions=">=0.0.31.post1910280903,<0.1",
)
def _upsample_but_nearest(op: Op) -> Work:
    if op.attrs["mode"] == "nearest":
        raise NotCounted(Cause.OP_NOT_COUNTED, "thop takes upsampling mode nearest as zero")
    return _upsample(op)


@rule(
    *_UPSAMPLINGS,
    source="FIRST:95",
    formula="linear 5 O, bilinear 13 O, bicubic 259 O, else 0",
    versions=">=0.0.30.post1908281655,<0.0.31.post1910280903",
)
def _upsample_with_13(op: Op) -> Work:
    return Work(mul=13 * elements_out(op)) if op.attrs["mode"] == "bilinear" else _upsample_but_nearest(op)


@rule(*classes("linear", "Linear"), source="H:140", formula="in_features O, bias ignored", versions=MACS)
def _linear(op: Op) -> Work:
    return Work(mac=op.attrs["in_features"] * elements_out(op))


@rule(
    *classes("linear", "Linear"),
    source="OLDEST:127",
    formula="O (in_features + in_features - 1 + bias)",
    versions=">=0.0.31.post1910280903,<0.0.31.post2004070130",
)
def _linear_in_flops(op: Op) -> Work:
    """Multiplies and adds counted apart, in a total of MACs."""
    width = op.attrs["in_features"]
    return Work(mac=elements_out(op) * (2 * width - (1 if op.attrs["bias"] is None else 0)))


@rule(
    *classes("linear", "Linear"),
    source="FIRST:123",
    formula="O (in_features + in_features - 1), bias ignored",
    versions="<0.0.31.post1910280903",
)
def _linear_in_flops_without_bias(op: Op) -> Work:
    return Work(mac=elements_out(op) * (2 * int(op.attrs["in_features"]) - 1))


_ZERO_OPS = (
    *classes("activation", "ReLU", "ReLU6"),
    *classes("pooling", "MaxPool1d", "MaxPool2d", "MaxPool3d"),
    *classes("pooling", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"),
    *classes("dropout", "Dropout"),
)


@rule(*_ZERO_OPS, source="P:21", formula="0")
@rule(*classes("padding", "ZeroPad2d"), source="P:21", formula="0", versions=MACS)
@rule(*classes("container", "Sequential"), source="P:21", formula="0", versions=">=0.0.4.post2109101452")
@rule(*classes("pixelshuffle", "PixelShuffle"), source="P:21", formula="0", versions=">=0.1.1.post2207130030")
@rule(*classes("activation", "LeakyReLU"), source="H:90, C:47", formula="0", versions=NEW)
def _zero(op: Op) -> Work:
    raise NotCounted(Cause.OP_NOT_COUNTED, f"thop's hook for {op.op} counts 0")


rule(*classes("activation", "LeakyReLU"), source="OLD:59", formula="N", versions=OLD)(per_input(mul=1))
for _kind, _source, _formula in (
    ("LSTM", "RN:78", "batch (4H(I+H) + 8H [+ 8H])"),
    ("GRU", "RN:47", "batch (3H(I+H) + 7H [+ 6H])"),
    ("RNN", "RN:15", "batch (H(I+H) + H [+ 2H])"),
):
    rule(*classes("rnn", f"{_kind}Cell"), source=_source, formula=_formula, versions=SINCE_RNN)(one_step(thop_step))


@rule(*classes("rnn", "RNN"), source="RN:87", formula="T B (H(I+H) + H [+ 2H])", versions=SINCE_RNN)
@rule(*classes("rnn", "GRU"), source="RN:124", formula="T B (3H(I+H) + 7H [+ 6H])", versions=SINCE_RNN)
@rule(*classes("rnn", "LSTM"), source="RN:161", formula="T B (4H(I+H) + 8H [+ 8H])", versions=SINCE_RNN)
def _recurrent(op: Op) -> Work:
    shape = dims(op.inputs[0].shape)
    if op.attrs["packed_batch"]:
        batch, steps = op.attrs["packed_batch"], dims(op.inputs[1].shape)[0]
    elif op.attrs["batch_first"]:
        batch, steps = shape[0], shape[1]
    else:
        batch, steps = shape[1], shape[0]
    return all_layers(op, thop_step, op.attrs["hidden_size"]) * (steps * batch)


FLOAT32 = "thop.float32"
"""Not an op: a sum of the counts of calls or of modules. ``addends`` are (count, times), in order."""


@rule(FLOAT32, source="OLDEST:27, SUM:107", formula="the sum in float32 less the sum in whole numbers", versions=FLOPS)
def _rounding_work(op: Op) -> Work:
    addends = [(amount, times) for amount, times in op.attrs["addends"]]
    return Work(mac=float32_sum(addends) - sum(amount * times for amount, times in addends))
