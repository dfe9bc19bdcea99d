"""Work of one call of a torch.nn module, from the shapes that a counter saw, by the formula for the ATen op of its class.

Bridges compare it with the trace: if both agree, the traced module ran as often, and on tensors of the same shapes.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.records import Op, Shape, Tensor
from ...work import Work, sum_works
from .bridge import known_work
from .rulebook import misfit

Twin = Callable[[Op], Op | None]

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
TRAINING = "training"
"""The attribute of a dropout layer whether it is in training, for a counter that counts it where it does nothing, too."""


def own_work(op: Op) -> Work | None:
    """Work of one call of the module; None if its class is not one of PyTorch's known here, or if no formula gives the work."""
    known = op.inputs and op.op.startswith(
        "torch.nn."
    )  # before PyTorch 2.0 a hook sees no argument that was given by name
    twin = _TWINS.get(op.op.rpartition(".")[2]) if known else None
    try:
        made = twin(op) if twin is not None else None
    except Exception as error:
        raise misfit("the formula for a module", op, error) from error
    return known_work(made) if made is not None else None


def of_sightings(sightings: list[Op]) -> Work | None:
    """Work of all calls of a module; None if that of any call is not known."""
    works = [(own_work(op), op.calls) for op in sightings]
    known = [work * calls for work, calls in works if work is not None]
    return sum_works(known) if len(known) == len(works) else None


def _weights(op: Op, *shapes: Shape) -> tuple[Tensor, ...]:
    return tuple(Tensor(shape, op.inputs[0].dtype) for shape in shapes)


def _input_shapes(op: Op) -> list[Shape]:
    return [tuple(op.attrs[name]) for name in ("weight", "bias") if op.attrs.get(name) is not None]


def _plain(name: str) -> Callable[[Op], Op]:
    """An op of the module's input, its weight and its bias; its settings keep the module's names."""

    def twin(op: Op) -> Op:
        return op._replace(op=name, inputs=(*op.inputs[:1], *_weights(op, *_input_shapes(op))))

    return twin


def _convolution(op: Op) -> Op:
    x, out = op.inputs[0], op.outputs[0]
    if x.shape is not None and out.shape is not None and len(x.shape) < len(op.attrs["weight"]):  # one without a batch
        x, out = x._replace(shape=(1, *x.shape)), out._replace(shape=(1, *out.shape))
    twin = _plain("aten._convolution")(op._replace(inputs=(x,), outputs=(out,)))
    return twin._replace(attrs={**op.attrs, "transposed": "Transpose" in op.op})


def _batch_norm(op: Op) -> Op:
    twin = _plain("aten.batch_norm")(op)
    kept = _weights(op, (1,), (1,)) if op.attrs["track_running_stats"] else ()
    return twin._replace(inputs=twin.inputs + kept, attrs={**op.attrs, "training": not kept})


def _instance_norm(op: Op) -> Op:
    twin = _plain("aten.instance_norm")(op)
    return twin._replace(
        attrs={**op.attrs, "use_input_stats": not op.attrs["track_running_stats"], "running_mean": None}
    )


def _upsample(op: Op) -> Op | None:
    name = _UPSAMPLE.get(op.attrs["mode"])
    return op._replace(op=name, attrs={}) if name else None


_UPSAMPLE = {
    "nearest": "aten.upsample_nearest2d",
    "linear": "aten.upsample_linear1d",
    "bilinear": "aten.upsample_bilinear2d",
    "trilinear": "aten.upsample_trilinear3d",
    "bicubic": "aten.upsample_bicubic2d",
}


def _cell(op: Op) -> Op:
    kind, hidden = _kind(op), op.attrs["hidden_size"]
    weights = _of_layer(op, hidden * GATES[kind], op.attrs["input_size"], hidden)
    states = op.inputs[:1] * (3 if kind == "LSTM" else 2)
    return op._replace(op=f"aten.{_aten(op, kind)}_cell", inputs=states + weights)


def _recurrent(op: Op) -> Op:
    kind, hidden = _kind(op), op.attrs["hidden_size"]
    directions = 2 if op.attrs["bidirectional"] else 1
    state = op.attrs.get("proj_size") or hidden
    weights: tuple[Tensor, ...] = ()
    for index in range(op.attrs["num_layers"]):
        width = directions * state if index else op.attrs["input_size"]
        layer_weights = _of_layer(op, hidden * GATES[kind], width, state)
        if state != hidden:
            layer_weights += _weights(op, (state, hidden))
        weights += layer_weights * directions
    attrs = {**op.attrs, "weights_at": 1, "train": False}
    return op._replace(op=f"aten.{_aten(op, kind)}", inputs=op.inputs[:1] + weights, attrs=attrs)


def _kind(op: Op) -> str:
    return op.op.rpartition(".")[2].removesuffix("Cell")


def _aten(op: Op, kind: str) -> str:
    return f"rnn_{op.attrs['nonlinearity']}" if kind == "RNN" else kind.lower()


def _of_layer(op: Op, rows: int, width: int, state: int) -> tuple[Tensor, ...]:
    return _weights(op, (rows, width), (rows, state), *([(rows,), (rows,)] if op.attrs["bias"] else []))


def _dropout(op: Op) -> Op | None:
    """Out of training it hands its input through; how often it is called in training, and what runs, is not known here."""
    return op._replace(op="aten.alias") if op.attrs.get(TRAINING) is False else None


_TWINS: dict[str, Twin] = {
    "Linear": _plain("aten.linear"),
    **{f"Conv{kind}{axes}d": _convolution for kind in ("", "Transpose") for axes in (1, 2, 3)},
    **{f"BatchNorm{axes}d": _batch_norm for axes in (1, 2, 3)},
    "SyncBatchNorm": _batch_norm,
    **{f"InstanceNorm{axes}d": _instance_norm for axes in (1, 2, 3)},
    "LayerNorm": _plain("aten.layer_norm"),
    "GroupNorm": _plain("aten.group_norm"),
    "PReLU": _plain("aten.prelu"),
    "Dropout": _dropout,
    "LeakyReLU": _plain("aten.leaky_relu"),
    "Softmax": _plain("aten.softmax"),
    **{f"AvgPool{axes}d": _plain(f"aten.avg_pool{axes}d") for axes in (1, 2, 3)},
    **{f"AdaptiveAvgPool{axes}d": _plain(f"aten.adaptive_avg_pool{axes}d") for axes in (1, 2, 3)},
    "Upsample": _upsample,
    "UpsamplingNearest2d": _upsample,
    "UpsamplingBilinear2d": _upsample,
    **{f"{kind}Cell": _cell for kind in GATES},
    **dict.fromkeys(GATES, _recurrent),
}
