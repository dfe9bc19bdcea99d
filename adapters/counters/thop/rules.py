"""What thop's hooks include, by the module's exact class. Unit MAC; biases and gates are mixed in at one each.

P = thop/profile.py, H = thop/vision/basic_hooks.py, C = thop/vision/calc_func.py, RN = thop/rnn_hooks.py; lines of
0.1.1.post2209072238.  ``N``: elements of the input, ``O``: of the output.
"""

from __future__ import annotations

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..rulebook import NotCounted, RuleBook, dims, size
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {
        "P": "thop/profile.py",
        "H": "thop/vision/basic_hooks.py",
        "C": "thop/vision/calc_func.py",
        "RN": "thop/rnn_hooks.py",
        "OLD": "thop/vision/basic_hooks.py (0.0.31; count_hooks.py before)",
        "OLDEST": "thop/count_hooks.py (0.0.31.post2001170342)",
    },
)
rule = BOOK.rule

# Compared: 0.0.31.post2001170342 (OLDEST), 0.0.31.post2005241907 (OLD: RNN hooks, Linear in MACs) and
# 0.1.1.post2209072238 (NEW: no convolution bias, affine norms, more hooks).  Releases between them were not.
OLDEST = "<0.0.31.post2005241907"
OLD = "<0.1"
SINCE_RNN = ">=0.0.31.post2005241907"
NEW = ">=0.1"

NN = "torch.nn.modules."


def _names(space: str, *classes: str) -> tuple[str, ...]:
    return tuple(f"{NN}{space}.{name}" for name in classes)


def _n(op: Op) -> int:
    return size(op.inputs[0].shape)


def _o(op: Op) -> int:
    return size(op.outputs[0].shape)


_CONV = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


@rule(*_names("conv", *_CONV), source="H:22, C:28", formula="O (in_channels // groups) K, bias ignored", versions=NEW)
def _conv(op: Op) -> Work:
    channels = dims(op.inputs[0].shape)[1]
    return Work(mac=_o(op) * (channels // op.attrs["groups"]) * prod(op.attrs["weight"][2:]))


@rule(*_names("conv", *_CONV), source="OLD:22", formula="O (in_channels // groups K + 1 for a bias)", versions=OLD)
def _conv_with_bias(op: Op) -> Work:
    kernel = prod(op.attrs["weight"][2:])
    o = _o(op)
    macs = o * (op.attrs["in_channels"] // op.attrs["groups"]) * kernel
    return Work(mac=macs, add=0 if op.attrs["bias"] is None else o)


_NORMS = (
    *_names("batchnorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"),
    *_names("instancenorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"),
    *_names("normalization", "LayerNorm"),
)


@rule(*_NORMS, source="H:60, C:43", formula="2N, 4N if affine", versions=NEW)
def _norm(op: Op) -> Work:
    n = _n(op)
    affine = op.attrs.get("affine", False) or op.attrs.get("elementwise_affine", False)
    return Work(add=2 * n, mul=2 * n) if affine else Work(add=n, mul=n)


@rule(*_names("batchnorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), source="OLD:44", formula="2N", versions=OLD)
def _batch_norm(op: Op) -> Work:
    n = _n(op)
    return Work(add=n, mul=n)


@rule(*_names("activation", "PReLU"), source="H:82", formula="N", versions=NEW)
def _prelu(op: Op) -> Work:
    return Work(mul=_n(op))


@rule(*_names("activation", "Softmax"), source="H:98, C:57", formula="rows (3 features - 1)", versions=NEW)
def _softmax(op: Op) -> Work:
    n, features = _n(op), dims(op.inputs[0].shape)[op.attrs["dim"]]
    rows = n // features
    return Work(special=rows * features, add=rows * (features - 1), div=rows * features)


@rule(*_names("pooling", "AvgPool1d", "AvgPool2d", "AvgPool3d"), source="H:106, C:65", formula="O")
def _avg_pool(op: Op) -> Work:
    return Work(div=_o(op))


@rule(
    *_names("pooling", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"),
    source="H:114, C:69",
    formula="int(O (prod(in / out) + 1))",
    versions=NEW,
)
def _adaptive_pool(op: Op) -> Work:
    window = 1.0  # thop divides in float64 and truncates the product; so does this
    for before, after in zip(dims(op.inputs[0].shape)[2:], dims(op.outputs[0].shape)[2:], strict=False):
        window *= before / after
    o = _o(op)
    return Work(add=int((window + 1) * o) - o, div=o)


_UPSAMPLE = {"nearest": 1, "linear": 5, "bilinear": 11, "bicubic": 224 + 35}


@rule(
    *_names("upsampling", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"),
    source="H:125, C:75",
    formula="nearest O, linear 5 O, bilinear 11 O, bicubic 259 O, else 0",
    versions=NEW,
)
def _upsample(op: Op) -> Work:
    mode = op.attrs["mode"]
    if mode not in _UPSAMPLE:
        raise NotCounted(Cause.OP_NOT_COUNTED, f"thop takes upsampling mode {mode} as zero")
    return Work(mul=_UPSAMPLE[mode] * _o(op))


@rule(
    *_names("linear", "Linear"),
    source="H:140",
    formula="in_features O, bias ignored",
    versions=SINCE_RNN,
)
def _linear(op: Op) -> Work:
    return Work(mac=op.attrs["in_features"] * _o(op))


@rule(
    *_names("linear", "Linear"),
    source="OLDEST:127",
    formula="O (in_features + in_features - 1 + bias)",
    versions=OLDEST,
)
def _linear_in_flops(op: Op) -> Work:
    """Multiplies and adds counted apart, in a total of MACs."""
    width = op.attrs["in_features"]
    return Work(mac=_o(op) * (2 * width - (1 if op.attrs["bias"] is None else 0)))


_ZERO_OPS = (
    *_names("activation", "ReLU", "ReLU6"),
    *_names("pooling", "MaxPool1d", "MaxPool2d", "MaxPool3d"),
    *_names("pooling", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"),
    *_names("dropout", "Dropout"),
)
_ZERO_OPS_NEW = (
    *_names("padding", "ZeroPad2d"),
    *_names("container", "Sequential"),
    *_names("pixelshuffle", "PixelShuffle"),
)


@rule(*_ZERO_OPS, source="P:21", formula="0")
@rule(*_ZERO_OPS_NEW, source="P:21", formula="0", versions=NEW)
@rule(*_names("activation", "LeakyReLU"), source="H:90, C:47", formula="0", versions=NEW)
def _zero(op: Op) -> Work:
    raise NotCounted(Cause.OP_NOT_COUNTED, f"thop's hook for {op.op} counts 0")


@rule(*_names("activation", "LeakyReLU"), source="OLD:55", formula="N", versions=OLD)
def _leaky_relu(op: Op) -> Work:
    return Work(mul=_n(op))


def _cell(op: Op, inputs: int) -> Work:
    """One step of one cell (RN:6, RN:24, RN:56); H = hidden_size, I = its inputs, three gates' worth for a GRU.

    RNN: H(I+H) + H [+ 2H bias]; GRU: 3H(I+H) + 3H + r*h: H + state: 3H [+ 6H]; LSTM: 4H(I+H) + 4H + c: 3H + h: H [+ 8H].
    """
    hidden: int = op.attrs["hidden_size"]
    bias = bool(op.attrs["bias"])
    kind = op.op.rpartition(".")[2].removesuffix("Cell")
    gates, extra_add, extra_mul = {"RNN": (1, 0, 0), "GRU": (3, 1, 3), "LSTM": (4, 1, 3)}[kind]
    return Work(
        mac=gates * hidden * (inputs + hidden),
        add=gates * hidden * (3 if bias else 1) + extra_add * hidden,
        mul=extra_mul * hidden,
    )


@rule(*_names("rnn", "RNNCell"), source="RN:15", formula="batch (H(I+H) + H [+ 2H])", versions=SINCE_RNN)
@rule(*_names("rnn", "GRUCell"), source="RN:47", formula="batch (3H(I+H) + 7H [+ 6H])", versions=SINCE_RNN)
@rule(
    *_names("rnn", "LSTMCell"),
    source="RN:78",
    formula="batch (4H(I+H) + 8H [+ 8H])",
    versions=SINCE_RNN,
)
def _one_cell(op: Op) -> Work:
    return _cell(op, op.attrs["input_size"]) * dims(op.inputs[0].shape)[0]


@rule(*_names("rnn", "RNN"), source="RN:87", formula="T B (H(I+H) + H [+ 2H])", versions=SINCE_RNN)
@rule(*_names("rnn", "GRU"), source="RN:124", formula="T B (3H(I+H) + 7H [+ 6H])", versions=SINCE_RNN)
@rule(*_names("rnn", "LSTM"), source="RN:161", formula="T B (4H(I+H) + 8H [+ 8H])", versions=SINCE_RNN)
def _recurrent(op: Op) -> Work:
    shape = dims(op.inputs[0].shape)
    if op.attrs["packed_batch"]:
        batch, steps = op.attrs["packed_batch"], dims(op.inputs[1].shape)[0]
    elif op.attrs["batch_first"]:
        batch, steps = shape[0], shape[1]
    else:
        batch, steps = shape[1], shape[0]
    directions = 2 if op.attrs["bidirectional"] else 1
    work = _cell(op, op.attrs["input_size"]) * directions
    for _ in range(op.attrs["num_layers"] - 1):
        work = work + _cell(op, op.attrs["hidden_size"] * directions) * directions
    return work * (steps * batch)
