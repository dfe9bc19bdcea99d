"""Naive loops of recurrent layers' backward pass, one layer and direction, over numbers that count (see ``counting``).

What the forward pass computed is at hand; a step's ``g`` is what arrives at its output.
"""

from __future__ import annotations

import numpy as np

from tests.work.counting import each, total
from tests.work.oracle import dense


def _slope(y):
    """y' of a sigmoid, as a function of the gradient that arrives."""
    return lambda g: g * (1 - y) * y


def _tanh_slope(y, g):
    return g * (1 - y * y)


def gru_step(held, g, _dc):
    """held: r, z, n, y = the product's third gate, span = h - n. Returns gates of x, gates of h, what goes past, no cell."""
    size = g.shape[1]
    x, h = np.empty((len(g), 3 * size), dtype=object), np.empty((len(g), 3 * size), dtype=object)
    past = np.empty(g.shape, dtype=object)
    for b, i in np.ndindex(g.shape):
        r, z, n, y, span = (held[name][b, i] for name in ("r", "z", "n", "y", "span"))
        past[b, i] = g[b, i] * z
        dz = g[b, i] * span
        dn = g[b, i] + (-past[b, i])
        da = _tanh_slope(n, dn)
        x[b, i] = h[b, i] = _slope(r)(da * y)
        x[b, size + i] = h[b, size + i] = _slope(z)(dz)
        x[b, 2 * size + i], h[b, 2 * size + i] = da, da * r
    return x, h, past, None


def lstm_step(held, g, dc):
    """held: i, f, g, o, c before, t = tanh(c); dc: what arrives at the cell, or None."""
    size = g.shape[1]
    gates, carried = np.empty((len(g), 4 * size), dtype=object), np.empty(g.shape, dtype=object)
    for b, j in np.ndindex(g.shape):
        i, f, n, o, before, t = (held[name][b, j] for name in ("i", "f", "g", "o", "c", "t"))
        cell = _tanh_slope(t, g[b, j] * o)
        cell = cell if dc is None else cell + dc[b, j]
        carried[b, j] = (cell, f)
        gates[b, j], gates[b, size + j] = _slope(i)(cell * n), _slope(f)(cell * before)
        gates[b, 2 * size + j], gates[b, 3 * size + j] = _tanh_slope(n, cell * i), _slope(o)(g[b, j] * t)
    return gates, gates, None, carried


def tanh_step(held, g, _dc):
    gates = each(_tanh_slope, held["y"], g)
    return gates, gates, None, None


STEPS = {"gru": gru_step, "lstm": lstm_step, "rnn_tanh": tanh_step}


def backward(tally, kind, held, x, before, w_ih, w_hh, g, into):
    """x (T, B, I), before (T, B, H): the states that each step began with; g (T, B, H); ``into``: dx is asked for.

    Returns dx or None, dw_ih, dw_hh, db_ih, db_hh.
    """
    arriving, cell = [], None
    of_x, of_h = [None] * len(x), [None] * len(x)
    for t in reversed(range(len(x))):
        whole = each(lambda *items: total(items), g[t], *arriving)
        of_x[t], of_h[t], past, carried = STEPS[kind](held[t], whole, cell)
        if t:
            arriving = [dense(tally, of_h[t], w_hh.T)] + ([] if past is None else [past])
            cell = None if carried is None else each(lambda pair: pair[0] * pair[1], carried)
    rows_x, rows_h = np.concatenate(of_x), np.concatenate(of_h)
    dx = dense(tally, rows_x, w_ih.T) if into else None
    products = [dense(tally, rows.T, np.concatenate(seen).T) for rows, seen in ((rows_x, x), (rows_h, before))]
    sums = [np.array([total(column) for column in rows.T], dtype=object) for rows in (rows_x, rows_h)]
    return dx, *products, *sums


def forward(kind, x, w_ih, w_hh, b_ih, b_hh, units):
    """The states and gates of a forward pass from zero, as plain numbers: (per step held, states before each step)."""
    h = c = np.zeros((x.shape[1], units))
    held, before = [], []
    for step in x:
        a, b = step @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        before.append(h)
        if kind == "gru":
            (r, z), y = _sigmoid(np.split((a + b)[:, : 2 * units], 2, 1)), b[:, 2 * units :]
            n = np.tanh(a[:, 2 * units :] + r * y)
            held.append({"r": r, "z": z, "n": n, "y": y, "span": h - n})
            h = n + z * (h - n)
        elif kind == "lstm":
            i, f, n, o = np.split(a + b, 4, 1)
            (i, f, o), n, old = _sigmoid([i, f, o]), np.tanh(n), c
            c = f * c + i * n
            held.append({"i": i, "f": f, "g": n, "o": o, "c": old, "t": np.tanh(c)})
            h = o * np.tanh(c)
        else:
            h = np.tanh(a + b)
            held.append({"y": h})
    return held, np.array(before)


def _sigmoid(gates):
    return [1 / (1 + np.exp(-gate)) for gate in gates]
