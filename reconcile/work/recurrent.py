"""The work of recurrent layers (RNN, LSTM, GRU), from the shapes of their weights.

G gates of H units on I inputs: w_ih (G*H, I), w_hh (G*H, H or P), biases (G*H,), projection w_hr (P, H).
Work per row (one time step of one sequence) and layer-direction:

- every matrix (m, k): m dot products of k terms; every bias (m,): m adds;
- the gates as ATen's CPU cells run them (aten/src/ATen/native/RNN.cpp: GRUCell, LSTMCell, SimpleCell), see GATES.

A test compares these with the operations that torch really dispatches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.work import UnknownWork, Work
from .contraction import dots

GATES: dict[str, tuple[int, Work]] = {
    # add: input + hidden gates 3, h - n, + n; mul: r * h_n, z * (h - n); sigmoid, sigmoid, tanh
    "gru": (3, Work(add=5, mul=2, special=3)),
    # add: input + hidden gates 4, f*c + i*g; mul: f*c, i*g, o*tanh(c); sigmoid x3, tanh x2
    "lstm": (4, Work(add=5, mul=3, special=5)),
    # add: input + hidden; tanh
    "rnn_tanh": (1, Work(add=1, special=1)),
    # add: input + hidden; max(0, .)
    "rnn_relu": (1, Work(add=1, cmp=1)),
}
"""Kind -> (number of gates G, work per row, layer-direction and hidden unit)."""


def layers(kind: str, rows: int, directions: int, weights: Sequence[tuple[int, ...]]) -> Work:
    """``rows`` rows through ``directions`` layer-directions (num_layers, doubled if bidirectional).

    ``weights``: shapes of all weights in torch's order: per layer-direction w_ih, w_hh[, biases][, w_hr].
    Raises UnknownWork if the weights are not those of that many layer-directions.
    """
    gates, cell = GATES[kind]
    matrices = [w for w in weights if len(w) == 2]
    biases = [w for w in weights if len(w) == 1]
    if (
        directions < 1
        or len(matrices) not in (2 * directions, 3 * directions)
        or len(matrices) + len(biases) != len(weights)
    ):
        raise UnknownWork(f"{kind}: {len(weights)} weights do not make {directions} layer-directions")
    step = len(matrices) // directions
    work = Work(add=rows * sum(size for (size,) in biases))
    for rows_of_matrix, k in matrices:
        work += dots(rows * rows_of_matrix, k)
    for recurrent in matrices[1::step]:
        work += cell * (rows * (recurrent[0] // gates))
    return work
