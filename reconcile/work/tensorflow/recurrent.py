"""Formulas of TensorFlow's fused recurrent cells (the CudnnRNN family, whose weights are one opaque buffer, has no formula)."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import Work, formula
from ..contraction import dense
from ..shapes import attr, shape


@formula("GRUBlockCell", source="TensorFlow core/kernels/rnn/gru_ops.h (GRUBlockCellFprop)")
def _gru_block(op: Op) -> Work:
    # x (B, I), h (B, H), w_ru (I+H, 2H), w_c (I+H, H), biases: [x h] w_ru + b_ru; [x h*r] w_c + b_c;
    # mul h*r; u * (h - c) + c: add 2, mul 1; sigmoid 2, tanh 1
    (batch, width), h = shape(op, 0), shape(op, 1)[1]
    cell = Work(add=2, mul=2, special=3) * (batch * h)
    return dense(batch, width + h, 2 * h, bias=True) + dense(batch, width + h, h, bias=True) + cell


def _lstm(rows: int, width: int, h: int, forget_bias: bool, peephole: bool, clip: bool) -> Work:
    """[x h] w + b; f + forget_bias: add; c = ci*i + c*f: mul 2, add 1; h = o * tanh(c): mul 1; sigmoid 3, tanh 2;
    peepholes to i, f, o: mul 3, add 3; clip of c: cmp 2."""
    cell = Work(add=1 + forget_bias + 3 * peephole, mul=3 + 3 * peephole, special=5, cmp=2 * clip)
    return dense(rows, width + h, 4 * h, bias=True) + cell * (rows * h)


@formula(
    "LSTMBlockCell", "BlockLSTM", "BlockLSTMV2", source="TensorFlow core/kernels/rnn/lstm_ops.h (LSTMBlockCellFprop)"
)
def _lstm_block(op: Op) -> Work:
    # LSTMBlockCell: x (B, I), cs_prev (B, H), ...; BlockLSTM: seq_len_max (), x (T, B, I), cs_prev (B, H), ...
    # All T steps of a BlockLSTM are counted, because a record does not hold the value of seq_len_max.
    at = 0 if op.op == "LSTMBlockCell" else 1
    data, h = shape(op, at), shape(op, at + 1)[1]
    rows = data[0] if at == 0 else data[0] * data[1]
    forget = op.op != "BlockLSTMV2" and attr(op, "forget_bias", 1.0) != 0
    return _lstm(rows, data[-1], h, forget, bool(attr(op, "use_peephole", False)), attr(op, "cell_clip", 3.0) > 0)
