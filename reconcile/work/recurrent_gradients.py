"""The work of the gradients of recurrent layers, from the shapes of their weights and from the requested gradients.

G gates of H units on I inputs, R rows (one time step of one sequence each), N rows that begin a sequence, P = H or the
size of the projection. Per layer-direction, in two parts.

Activations, if anything before the gates needs a gradient:

- the gates' derivatives, row by row, as autograd computes them for ATen's cells (native/RNN.cpp), see CELLS;
- the gradients that one hidden state gets from several sources are added: the layer above or the output, the next step
  (GRU: through its product and past it), the last state: one add per element and source after the first;
- dh = dgates @ w_hh: (R - N) P dot products of GH, all R if the first state needs a gradient too; before that, a
  projection: dh @ w_hr: R H dot products of P, for the rows whose h has a gradient;
- dx = dgates @ w_ih: R I dot products of GH, if the input needs a gradient; two directions' are added: R I;
- dropout between layers: g * noise: mul, for each element.

Weights: every product of the forward pass once: w_ih R GH I, w_hh R GH P, w_hr R P H multiply-adds; ONE accumulator per
weight, however the kernel splits the steps (a kernel that sums each step separately and then adds the sums does the same
number of adds in total). Bias: the sum of R rows: add (R - 1) GH.

The derivation, for a GRU, h' = n + z * (h - n), n = tanh(a), a = x_n + r * y, y = h_n, g the gradient of h':
d(h - n) = g * z; dz = g * (h - n); dn = g - g * z; da = dn * (1 - n * n); dy = da * r; dr = da * y; and
s' = s * (1 - s) of both sigmoids. The rest is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.work import UnknownWork, Work
from .contraction import dots
from .recurrent import GATES

CELLS: dict[str, Work] = {
    # mul: g * z, g * (h - n), tanh' 2, da * r, da * y, two sigmoids' 4; add: -(g * z), + g, tanh' 1, sigmoids' 2
    "gru": Work(mul=10, add=5),
    # to c: dh * o, tanh' 2; to the gates: dh * tanh(c), dc * c_before, dc * g, dc * i, three sigmoids' 6, tanh' 2;
    # add: tanh' 1 + 1, sigmoids' 3. The gradient for the previous step, dc * f, and the sum for dc are counted separately
    "lstm": Work(mul=15, add=5),
    "rnn_tanh": Work(mul=2, add=1),
    "rnn_relu": Work(cmp=1),
}
"""Kind -> work per row, layer-direction and hidden unit, without the sums of incoming gradients."""

LSTM_OUTPUT = Work(mul=6, add=2)
"""Work saved in a row where only c has a gradient, not h: dh * o and tanh(c)', dh * tanh(c) and o's sigmoid'."""


GRU_PRODUCT = Work(mul=1)
"""Work saved in the first rows where nothing needs the gradient of the product with h, neither w_hh, its bias nor h: da * r."""


PROJECTED = (3, 5)
"""The number of weights of a layer-direction with a projection, without and with biases."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The tensors that need a gradient; ``arrived``: the outputs that have one (output, last hidden states, last cells)."""

    data: bool
    states: bool
    cells: bool
    weights: tuple[bool, ...]
    arrived: tuple[bool, ...] = (True, False, False)


@dataclass(frozen=True, slots=True)
class Rows:
    """The numbers of all rows, of sequences (each has one last row), and of rows in the first step of each direction."""

    all: int
    sequences: int
    first: tuple[int, ...]


def gradients(
    kind: str, rows: Rows, layers: int, weights: Sequence[tuple[int, ...]], asked: Asked, dropout: float = 0.0
) -> tuple[Work, Work]:
    """(activations, weights): see the module. ``weights`` as recurrent.layers takes them, ``rows.first`` per direction.

    Raises UnknownWork if the weights do not fit this number of layers.
    """
    directions = len(rows.first)
    size, rest = divmod(len(weights), layers * directions)
    if rest or not 2 <= size <= 5 or len(weights) != len(asked.weights):
        raise UnknownWork(f"{kind}: {len(weights)} weights do not make {layers} layers of {directions} directions")
    below = asked.data
    into, of_weights = Work(), Work()
    for layer in range(layers):
        start = layer * directions * size
        in_layer = range(start, start + directions * size)
        needed = any(asked.weights[i] for i in in_layer) or asked.states or asked.cells
        arrived = (layer < layers - 1 or asked.arrived[0], *asked.arrived[1:])
        if below or needed:
            inputs = weights[start][1]
            for direction, first in enumerate(rows.first):
                own_weights = [weights[i] for i in in_layer[direction * size : (direction + 1) * size]]
                into += _cells(kind, rows, first, own_weights, arrived, asked)
                recurring = asked.weights[start + direction * size :][1:size:2]  # w_hh and its bias
                if kind == "gru" and not asked.states and not any(recurring):
                    into -= GRU_PRODUCT * (first * own_weights[1][1])
                into += dots(rows.all * inputs, own_weights[0][0]) if below else Work()
            into += Work(add=rows.all * inputs * (directions - 1)) if below else Work()
            into += Work(mul=rows.all * inputs) if below and layer and dropout else Work()
        for i in in_layer:
            projects = size in PROJECTED and (i - start) % size == size - 1
            used = rows.all if not projects or any(arrived[:2]) else rows.all - rows.sequences
            of_weights += _weight(used, weights[i]) if asked.weights[i] else Work()
        below = below or needed
    return into, of_weights


def _weight(rows: int, weight: tuple[int, ...]) -> Work:
    if len(weight) == 1:
        return Work(add=max(rows - 1, 0) * weight[0])
    return dots(weight[0] * weight[1], rows)


def _cells(
    kind: str, rows: Rows, first: int, weights: Sequence[tuple[int, ...]], arrived: tuple[bool, ...], asked: Asked
) -> Work:
    """Gates, states and their incoming gradients, of one layer-direction."""
    wide, out = weights[1]  # (G H, P)
    units = wide // GATES[kind][0]
    before = rows.all - (0 if asked.states else first)
    followed = rows.all - rows.sequences
    above, state, cell = (*arrived, False, False)[:3]
    terms = above + (2 if kind == "gru" else 1)
    work = CELLS[kind] * (rows.all * units) + dots(before * out, wide)
    work += Work(add=out * (followed * (terms - 1) + rows.sequences * max(above + state - 1, 0)))
    if kind == "gru" and asked.states:
        work += Work(add=rows.sequences * out)
    has_gradient = above or state  # of the last rows' h; otherwise only the cell may have one
    if len(weights) in PROJECTED:
        work += dots((rows.all - (0 if has_gradient else rows.sequences)) * units, out)
    if kind == "lstm":
        carried = rows.all - (0 if asked.cells else first)
        work += Work(mul=carried * units, add=units * (followed + (rows.sequences if has_gradient and cell else 0)))
        work = work if has_gradient else work - LSTM_OUTPUT * (rows.sequences * units)
    return work
