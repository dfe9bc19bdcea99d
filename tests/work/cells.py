"""One step of every recurrent layer, over numbers that count (see ``counting``)."""

from __future__ import annotations

import numpy as np

from tests.work.counting import Num, each
from tests.work.oracle import dense


def keras_gru_cell(tally, x, h, kernel, recurrent, b_i, b_r):
    """Keras, reset_after: gates z, r, h; h' = z * h + (1 - z) * hh, hh = tanh(x_h + r * h_h). kernel (I, 3H)."""
    size = h.shape[1]
    xs, hs = dense(tally, x, kernel.T, b_i), dense(tally, h, recurrent.T, b_r)
    result = np.empty(h.shape, dtype=object)
    for b, i in np.ndindex(h.shape):
        z = (xs[b, i] + hs[b, i]).sigmoid()
        r = (xs[b, size + i] + hs[b, size + i]).sigmoid()
        hh = (xs[b, 2 * size + i] + r * hs[b, 2 * size + i]).tanh()
        result[b, i] = z * h[b, i] + (1 - z) * hh
    return result


def block_gru_cell(tally, x, h, w_ru, w_c, b_ru, b_c):
    """TensorFlow's GRUBlockCell: the reset gate before the product; h' = u * (h - c) + c."""
    size = h.shape[1]
    ru = dense(tally, np.concatenate([x, h], 1), w_ru.T, b_ru)
    ru = each(Num.sigmoid, ru)
    reset = each(lambda a, b: a * b, h, ru[:, :size])
    c = each(Num.tanh, dense(tally, np.concatenate([x, reset], 1), w_c.T, b_c))
    return each(lambda u, a, b: u * (a - b) + b, ru[:, size:], h, c)


def block_lstm_cell(tally, x, c, h, w, b, forget_bias, peepholes=None):
    """TensorFlow's LSTMBlockCell, gates i, ci, f, o; peepholes (wci, wcf, wco). No clipping. Returns h', c'."""
    size = c.shape[1]
    gates = dense(tally, np.concatenate([x, h], 1), w.T, b)
    new_h, new_c = np.empty(c.shape, dtype=object), np.empty(c.shape, dtype=object)
    for r, j in np.ndindex(c.shape):
        i, g, f, o = (gates[r, k * size + j] for k in range(4))
        f = f + forget_bias
        if peepholes:
            i, f = i + c[r, j] * peepholes[0][j], f + c[r, j] * peepholes[1][j]
        new_c[r, j] = g.tanh() * i.sigmoid() + c[r, j] * f.sigmoid()
        if peepholes:
            o = o + new_c[r, j] * peepholes[2][j]
        new_h[r, j] = o.sigmoid() * new_c[r, j].tanh()
    return new_h, new_c
