"""What counters of PyTorch's modules count for one step of a recurrent layer, and how they add up the steps."""

from __future__ import annotations

from collections.abc import Callable

from ...core.records import Op
from ...work import ZERO, Work
from .rule_parts import classes, shape_in
from .rulebook import Compute

Step = Callable[[Op, int], Work]
"""The work of one step of one layer for one row, by the width of the layer's input."""

GATES = {"RNN": (1, 0, 1), "GRU": (3, 3, 4), "LSTM": (4, 5, 5)}
"""Gates, and multiplications and additions for each hidden element and step, by kind of layer, in DeepSpeed and ptflops."""
THOP_GATES = {"RNN": (1, 0, 0), "GRU": (3, 3, 1), "LSTM": (4, 3, 1)}
"""The same in thop, except one addition for each gate, or three with biases."""

LAYERS = classes("rnn", *GATES)
CELLS = classes("rnn", *(f"{kind}Cell" for kind in GATES))


def kind_of(op: Op) -> str:
    """RNN, GRU or LSTM: of the class, or of the nearest base."""
    names = (name.rpartition(".")[2].removesuffix("Cell") for name in (op.op, *op.attrs.get("bases", ())))
    return next(name for name in names if name in GATES)


def state_of(op: Op) -> int:
    """The width of the state that goes into the next step: projected, if the layer projects it."""
    return int(op.attrs.get("proj_size") or op.attrs["hidden_size"])


def gated_step(op: Op, width: int) -> Work:
    """Both products and elementwise work, without biases (``biases`` has these)."""
    hidden = op.attrs["hidden_size"]
    gates, mul, add = GATES[kind_of(op)]
    return Work(mac=gates * hidden * (width + state_of(op)), mul=mul * hidden, add=add * hidden)


def biases(op: Op) -> Work:
    """Both biases of one step, whether or not the layer has them."""
    return Work(add=2 * GATES[kind_of(op)][0] * op.attrs["hidden_size"])


def thop_step(op: Op, width: int, projected: int = 0) -> Work:
    """H = hidden_size, I = ``width``, P = the width of the state if it is projected, which adds the projection.

    RNN: H(I+H) + H [+ 2H bias]; GRU: 3H(I+H) + 3H + r*h: H + state: 3H [+ 6H]; LSTM: 4H(I+H) + 4H + c: 3H + h: H [+ 8H].
    """
    hidden: int = op.attrs["hidden_size"]
    gates, mul, add = THOP_GATES[kind_of(op)]
    return Work(
        mac=gates * hidden * (width + (projected or hidden)) + hidden * projected,
        add=gates * hidden * (3 if op.attrs["bias"] else 1) + add * hidden,
        mul=mul * hidden,
    )


def all_layers(op: Op, step: Step, state: int) -> Work:
    """One step of every layer for one row, both directions alike; a layer above the first takes the states of both."""
    directions = 2 if op.attrs["bidirectional"] else 1
    widths = [op.attrs["input_size"], *[directions * state] * (op.attrs["num_layers"] - 1)]
    return sum((step(op, width) for width in widths), ZERO) * directions


def first_two_sizes(step: Step) -> Compute:
    """Every layer, for as many rows as the first two sizes of the input make, whichever of them is the batch."""

    def compute(op: Op) -> Work:
        rows = shape_in(op)
        return all_layers(op, step, state_of(op)) * (rows[0] * rows[1])

    return compute


def one_step(step: Step) -> Compute:
    """A cell: one step for as many rows as the first size of the input."""
    return lambda op: step(op, op.attrs["input_size"]) * shape_in(op)[0]
