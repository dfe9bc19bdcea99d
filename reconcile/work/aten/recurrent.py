"""Formulas of ATen recurrent operators: whole layers, cells, and the fused kernels of CPU and GPU libraries."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import UnknownWork, Work, formulas, prod
from ..elementwise import ATEN
from ..recurrent import GATES, layers
from ..shapes import attr, n_in, n_out, shape

_SOURCE = "recurrent.py: ATen native/RNN.cpp"


def _rows(op: Op) -> int:
    """Time steps times sequences: the data without its last dimension. Packed data has them as its rows."""
    return prod(shape(op)[:-1])


def _directions(op: Op) -> int:
    """Layer-directions."""
    return int(attr(op, "num_layers")) * (2 if attr(op, "bidirectional") else 1)


def _dropout(op: Op, weights: list[tuple[int, ...]]) -> Work:
    """Dropout between layers, in training: every element of the input of each layer but the first."""
    if not op.attrs.get("train", True) or not op.attrs.get("dropout"):
        return Work()
    each = len(weights) // int(attr(op, "num_layers"))
    return ATEN["dropout"][0] * (_rows(op) * sum(weights[i][-1] for i in range(each, len(weights), each)))


def _layer(op: Op) -> Work:
    # data (T, B, I), (B, T, I), (T, I) or packed (rows, I); weights from index weights_at in torch's order
    weights = [shape(op, i) for i in range(int(attr(op, "weights_at")), len(op.inputs))]
    return layers(op.op[len("aten.") :], _rows(op), _directions(op), weights) + _dropout(op, weights)


def _cell(op: Op) -> Work:
    # x (B, I), h (B, H)[, c (B, H)], w_ih (G*H, I), w_hh (G*H, H)[, b_ih, b_hh (G*H,)]
    kind = op.op[len("aten.") : -len("_cell")]
    first = 3 if kind == "lstm" else 2
    return layers(kind, _rows(op), 1, [shape(op, i) for i in range(first, len(op.inputs))])


_LIBRARY_MODES = ("rnn_relu", "rnn_tanh", "lstm", "gru")
"""In the order of cudnnRNNMode_t and of ideep's rnn_kind."""


def library_mode(op: Op) -> str:
    """Kind of the layer that a library's kernel is called for."""
    mode = attr(op, "mode")
    if not isinstance(mode, int) or not 0 <= mode < len(_LIBRARY_MODES):
        raise UnknownWork(f"{op.op}: mode {mode!r} is not a recurrent mode")
    return _LIBRARY_MODES[mode]


def _mkldnn_layer(op: Op) -> Work:
    # input (T, B, I), w_ih, w_hh, b_ih, b_hh, hx, cx: one layer-direction; without biases there are zeros instead
    weights = [shape(op, i) for i in ((1, 2, 3, 4) if attr(op, "has_biases") else (1, 2))]
    return layers(library_mode(op), _rows(op), 1, weights)


def _cudnn_layers(op: Op) -> Work:
    # input, then weight_stride0 weights per layer-direction, then buffers and states
    directions = _directions(op)
    weights = [shape(op, 1 + i) for i in range(int(attr(op, "weight_stride0")) * directions)]
    return layers(library_mode(op), _rows(op), directions, weights) + _dropout(op, weights)


def _fused_cell(op: Op) -> Work:
    # input_gates (B, G*H), hidden_gates (B, G*H), hx or cx (B, H)[, input_bias, hidden_bias (G*H,)]: other ops make the products
    kind = "gru" if "gru" in op.op else "lstm"
    return GATES[kind][1] * n_out(op) + Work(add=(len(op.inputs) - 3) * n_in(op))


formulas({
    "gru lstm rnn_tanh rnn_relu": (_SOURCE, _layer),
    "gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell": (_SOURCE, _cell),
    "mkldnn_rnn_layer": (f"{_SOURCE}; arguments from native/mkldnn/RNN.cpp", _mkldnn_layer),
    "_cudnn_rnn": (f"{_SOURCE}; arguments from native/cudnn/RNN.cpp", _cudnn_layers),
    "_thnn_fused_gru_cell _thnn_fused_lstm_cell": (f"{_SOURCE}, native/cuda/RNN.cu: gates and biases alone", _fused_cell),
}, "aten.")  # fmt: skip
