"""Rules of ultralytics-thop, by a module's class or the nearest base that it knows, and by function. Unit MAC.

Norms, pooling, softmax, biases and gates of recurrent layers add one each to the same number. B = thop/vision/basic_hooks.py, C =
thop/vision/calc_func.py, P = thop/profile.py, RN = thop/rnn_hooks.py; lines of 2.2.3. The package is under the AGPL: these
formulas are reconcile's own, derived from what it counts. ``N``: elements of the input, ``O``: of the output.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..rule_parts import NN, all_layers, by_axes, classes, elements_out, per_input, state_of, thop_step, two_or_four
from ..rulebook import NotCounted, RuleBook, dims
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {
        "B": "thop/vision/basic_hooks.py",
        "C": "thop/vision/calc_func.py",
        "P": "thop/profile.py",
        "RN": "thop/rnn_hooks.py",
    },
    inherited=True,  # P:222 takes the classes of a module in their order
)
rule = BOOK.rule


@rule(*by_axes("conv", "Conv"), source="B:32, C:27", formula="O (in_channels // groups) K")
@rule(*by_axes("conv", "ConvTranspose"), source="B:54, C:27", formula="N (out_channels // groups) K")
def _conv(op: Op) -> Work:
    kernel = op.attrs["weight"][2:]
    source, target = dims(op.inputs[0].shape), dims(op.outputs[0].shape)
    if "Transpose" in next(name for name in (op.op, *op.attrs.get("bases", ())) if name.startswith(f"{NN}conv.Conv")):
        source, target = target, source
    return Work(mac=prod(target) * (source[-1 - len(kernel)] // op.attrs["groups"]) * prod(kernel))


rule(
    *classes("batchnorm", "_NormBase"),
    *classes("normalization", "LayerNorm", "GroupNorm", "RMSNorm"),
    source="B:68, C:37",
    formula="2N, 4N if affine",
)(two_or_four)


rule(*classes("activation", "PReLU"), source="B:90", formula="N")(per_input(mul=1))


def _softmax_of(rows: int, features: int) -> Work:
    return Work(special=rows * features, add=rows * max(features - 1, 0), div=rows * features)


@rule(*classes("activation", "Softmax", "LogSoftmax", "Softmin", "Softmax2d"), source="B:98, C:42",
      formula="rows (3 features - 1); Softmin N more, LogSoftmax rows more")  # fmt: skip
def _softmax(op: Op) -> Work:
    shape, classes = dims(op.inputs[0].shape), (op.op, *op.attrs.get("bases", ()))
    axis = op.attrs.get("dim")
    if f"{NN}activation.Softmax2d" in classes:
        axis = -3
    elif axis is None:
        axis = 0 if len(shape) in (0, 1, 3) else 1
    features = shape[axis] if shape else 1
    rows = prod(shape) // features if features else 0
    work = _softmax_of(rows, features)
    if f"{NN}activation.Softmin" in classes:
        return work + Work(mul=prod(shape))
    return work + Work(special=rows) if f"{NN}activation.LogSoftmax" in classes else work


def _each(value: int | Sequence[int], axes: int) -> list[int]:
    return [value] * axes if isinstance(value, int) else list(value)


@rule(*by_axes("pooling", "AvgPool"), source="B:118", formula="inputs in all windows, and O")
def _avg_pool(op: Op) -> Work:
    """Each window adds its elements, with the padding if it is included, and divides once."""
    classes = (op.op, *op.attrs.get("bases", ()))
    axes = next(axes for axes in (1, 2, 3) if f"{NN}pooling.AvgPool{axes}d" in classes)
    kernel, stride, padding = (_each(op.attrs[name], axes) for name in ("kernel_size", "stride", "padding"))
    shape, pooled = dims(op.inputs[0].shape), dims(op.outputs[0].shape)
    adds = prod(shape[:-axes])
    for axis in range(axes):
        length, margin = shape[axis - axes], padding[axis]
        first, last = (-margin, length + margin) if op.attrs["count_include_pad"] else (0, length)
        starts = [number * stride[axis] - margin for number in range(pooled[axis - axes])]
        adds *= sum(max(min(start + kernel[axis], last) - max(start, first), 0) for start in starts)
    return Work(add=adds, div=prod(pooled))


@rule(*by_axes("pooling", "AdaptiveAvgPool"), source="B:133", formula="inputs in all windows, and O")
def _adaptive_pool(op: Op) -> Work:
    """Window j of an axis is from floor(j I / O) to ceil((j + 1) I / O)."""
    adds = 1
    for length, count in zip(dims(op.inputs[0].shape), dims(op.outputs[0].shape), strict=True):
        adds *= sum((length * (j + 1) + count - 1) // count - length * j // count for j in range(count))
    return Work(add=adds, div=elements_out(op))


_UPSAMPLE = {"linear": 5, "bilinear": 11, "bicubic": 259, "trilinear": 31}


@rule(
    *classes("upsampling", "Upsample"),
    source="B:152",
    formula="linear 5 O, bilinear 11 O, trilinear 31 O, bicubic 259 O, nearest 0",
)
def _upsample(op: Op) -> Work:
    mode = op.attrs["mode"]
    if mode not in _UPSAMPLE:
        raise NotCounted(Cause.OP_NOT_COUNTED, f"ultralytics-thop takes upsampling mode {mode} as zero")
    return Work(mul=_UPSAMPLE[mode] * elements_out(op))


@rule(*classes("linear", "Linear"), source="B:169, C:51", formula="in_features O, bias ignored")
def _linear(op: Op) -> Work:
    return Work(mac=op.attrs["in_features"] * elements_out(op))


@rule(*classes("linear", "Bilinear"), source="B:179, C:51", formula="(in1_features + 1) in2_features O, bias ignored")
def _bilinear(op: Op) -> Work:
    return Work(mac=(op.attrs["in1_features"] + 1) * op.attrs["in2_features"] * elements_out(op))


def _attention(op: Op, batch_first: bool, kdim: int, vdim: int) -> Work:
    """Projections of T queries and S keys, and two products of T with the S' keys attended, to which S' - S were appended."""
    out, key = dims(op.outputs[0].shape), dims(op.inputs[1].shape)
    axis = 0 if len(out) == 2 else 1 if batch_first else 0
    batch = 1 if len(out) == 2 else out[0 if batch_first else 1]
    appended = bool(op.attrs["bias_k"]) + bool(op.attrs["add_zero_attn"])
    width, queries = op.attrs["embed_dim"], out[axis]
    attended = dims(op.outputs[1].shape)[-1] if len(op.outputs) > 1 else key[axis] + appended
    keys = attended - appended
    macs = 2 * queries * width**2 + keys * width * (kdim + vdim) + 2 * queries * attended * width
    return Work(mac=batch * macs) + _softmax_of(batch * op.attrs["num_heads"] * queries, attended)


_ATTENTION_FORMULA = "B (2 T E^2 + S E (K + V) + 2 T S' E), and softmax of B heads T rows"


@rule(*classes("activation", "MultiheadAttention"), source="B:184", formula=_ATTENTION_FORMULA)
def _multihead(op: Op) -> Work:
    return _attention(op, bool(op.attrs["batch_first"]), op.attrs["kdim"], op.attrs["vdim"])


_ZERO = (
    *classes("padding", "_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd", "_CircularPadNd"),
    *classes("dropout", "_DropoutNd"),
    *classes("activation", "ReLU", "ReLU6", "LeakyReLU"),
    *by_axes("pooling", "MaxPool"),
    *by_axes("pooling", "AdaptiveMaxPool"),
    *classes("pooling", "FractionalMaxPool2d", "FractionalMaxPool3d", "_MaxUnpoolNd"),
    *classes("linear", "Identity"),
    *classes("flatten", "Flatten", "Unflatten"),
    *classes("fold", "Unfold"),
    *classes("pixelshuffle", "PixelShuffle", "PixelUnshuffle"),
    *classes("channelshuffle", "ChannelShuffle"),
)


@rule(*_ZERO, source="P:42", formula="0")
@rule(*classes("sparse", "Embedding"), source="B:26", formula="0")
def _zero(op: Op) -> Work:
    raise NotCounted(Cause.OP_NOT_COUNTED, f"ultralytics-thop's rule for {op.op} counts 0")


@rule(*classes("rnn", "RNNCell"), source="RN:24", formula="batch (H(I+H) + H [+ 2H])")
@rule(*classes("rnn", "GRUCell"), source="RN:58", formula="batch (3H(I+H) + 7H [+ 6H])")
@rule(*classes("rnn", "LSTMCell"), source="RN:92", formula="batch (4H(I+H) + 8H [+ 8H])")
def _one_cell(op: Op) -> Work:
    shape = dims(op.inputs[0].shape)
    return thop_step(op, op.attrs["input_size"]) * (shape[0] if len(shape) == 2 else 1)


@rule(*classes("rnn", "RNN"), source="RN:102", formula="steps (H(I+H) + H [+ 2H])")
@rule(*classes("rnn", "GRU"), source="RN:128", formula="steps (3H(I+H) + 7H [+ 6H])")
@rule(*classes("rnn", "LSTM"), source="RN:154", formula="steps (4H(I+P) + 8H [+ 8H] [+ H P])")
def _recurrent(op: Op) -> Work:
    """Steps of all sequences: B T, or the rows of a packed sequence."""
    shape = dims(op.inputs[0].shape)
    projected = op.attrs.get("proj_size", 0)
    return all_layers(op, lambda op, width: thop_step(op, width, projected), state_of(op)) * prod(shape[:-1])


@rule("torch.matmul", "torch.bmm", "torch.linear", source="P:133", formula="O times the last axis of the first operand")
def _product(op: Op) -> Work:
    return Work(mac=elements_out(op) * dims(op.inputs[0].shape)[-1])


@rule("torch.scaled_dot_product_attention", source="P:138", formula="B heads T S (D_query + D_value)")
def _sdpa(op: Op) -> Work:
    query, key, value = (dims(tensor.shape) for tensor in op.inputs[:3])
    return Work(mac=elements_out(op) // value[-1] * key[-2] * (query[-1] + value[-1]))


@rule(
    "torch.einsum", source="P:153", formula="sizes of the labels that both operands have or the output keeps, for two"
)
def _einsum(op: Op) -> Work:
    if len(op.inputs) != 2:
        raise NotCounted(Cause.OP_NOT_COUNTED, f"ultralytics-thop takes an einsum of {len(op.inputs)} operands as zero")
    terms, arrow, output = str(op.attrs["equation"]).replace(" ", "").partition("->")
    if not arrow:
        output = "..." + "".join(label for label in terms if terms.count(label) == 1)
    sizes = [_labels(term, dims(tensor.shape)) for term, tensor in zip(terms.split(","), op.inputs, strict=True)]
    kept = 1
    for label in {**sizes[0], **sizes[1]}:
        of_each = [labels.get(label, 1) for labels in sizes]
        held = ("..." in output) if label.startswith("#") else label in output
        if held or 1 not in of_each:
            kept *= max(of_each) if 0 not in of_each else 0
    return Work(mac=kept)


def _labels(term: str, shape: tuple[int, ...]) -> dict[str, int]:
    """Sizes by label; the axes of an ellipsis are numbered from the right."""
    before, dots, after = term.partition("...")
    hidden = len(shape) - len(before) - len(after) if dots else 0
    names = [*before, *(f"#{number}" for number in range(hidden, 0, -1)), *after]
    return dict(zip(names, shape, strict=True))


@rule("torch.multi_head_attention_forward", source="P:144, B:184", formula=_ATTENTION_FORMULA)
def _attention_function(op: Op) -> Work:
    return _attention(op, False, dims(op.inputs[1].shape)[-1], dims(op.inputs[2].shape)[-1])
