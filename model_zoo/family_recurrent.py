"""Recurrent layers: SimpleRNN, GRU and LSTM, stacked, both ways, without bias, unrolled, step by step, reset before.

Each branch is one layer on (2, 5, 4): samples, steps, channels.

How the frameworks differ here
* Keras stacks layers, nn.GRU and its kin of PyTorch hold several levels and both directions.
* PyTorch has two biases per gate; Keras' SimpleRNN and LSTM have one, its GRU two if the reset gate comes after the product.
* A GRU whose reset gate comes before the product is Keras' reset_after=False; PyTorch has none and writes it out.
* PyTorch takes steps first or samples first; Keras samples first.
* Keras walks the steps in a loop of the graph, or unrolled; PyTorch in a kernel, or in Python over a cell.
"""

from __future__ import annotations

from typing import Any

from reconcile.model_zoo.bricks import Brick, Shape, module, weights
from reconcile.model_zoo.bricks.net import branches, pair

SHAPE: Shape = (5, 4)
UNITS = 3


def recurrent(
    name: str,
    kind: str,
    levels: int = 1,
    both_ways: bool = False,
    bias: bool = True,
    steps_first: bool = False,
    last: bool = False,
    activation: str = "tanh",
    unroll: bool = False,
) -> Brick:
    """A recurrent layer that gives every step, or the last one alone."""
    wide = UNITS * (2 if both_ways else 1)

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        layers = keras.layers

        def one(name: str) -> Any:
            options: dict[str, Any] = {} if kind == "LSTM" else {"activation": activation}
            if kind == "GRU":
                options["reset_after"] = True
            return getattr(layers, {"RNN": "SimpleRNN"}.get(kind, kind))(
                UNITS, use_bias=bias, return_sequences=not last, unroll=unroll, name=name, **options
            )

        def level(name: str) -> Any:
            return layers.Bidirectional(one(name + "_cells"), name=name) if both_ways else one(name)

        if levels == 1:
            return level(name)
        return keras.Sequential([level(f"level{i}") for i in range(levels)], name=name)

    def torch(shape: Shape) -> Any:
        import torch

        options = {"nonlinearity": activation} if kind == "RNN" else {}
        inner = getattr(torch.nn, kind)(
            shape[-1], UNITS, levels, bias=bias, batch_first=not steps_first, bidirectional=both_ways, **options
        )

        def forward(self: Any, x: Any) -> Any:
            if steps_first:
                return self.inner(x.transpose(0, 1))[0].transpose(0, 1)
            found, hidden = self.inner(x)
            if not last:
                return found
            return (hidden[0] if kind == "LSTM" else hidden)[-1]

        return module(forward, inner=inner)

    return Brick(name, SHAPE, tf, torch, weights.recurrent, out=lambda shape: (UNITS,) if last else (shape[0], wide))


def reset_before(name: str, bias: bool = True) -> Brick:
    """A GRU whose reset gate comes before the product: n = tanh(W x + U (r * h)); in PyTorch one step after the other."""

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        return keras.layers.GRU(UNITS, reset_after=False, use_bias=bias, return_sequences=True, name=name)

    def torch(shape: Shape) -> Any:
        import torch

        def forward(self: Any, x: Any) -> Any:
            h = x.new_zeros(x.shape[0], UNITS)
            found = []
            for step in x.unbind(1):
                gates = self.inputs(step)
                z, r = torch.sigmoid(gates[:, : 2 * UNITS] + self.gates(h)).chunk(2, 1)
                n = torch.tanh(gates[:, 2 * UNITS :] + self.candidate(r * h))
                h = z * h + (1 - z) * n
                found.append(h)
            return torch.stack(found, 1)

        linear = torch.nn.Linear
        return module(
            forward,
            inputs=linear(shape[-1], 3 * UNITS, bias=bias),
            gates=linear(UNITS, 2 * UNITS, bias=False),
            candidate=linear(UNITS, UNITS, bias=False),
        )

    def copy(layer: Any, found: Any) -> None:
        kernel, hidden, *biases = layer.get_weights()
        weights.put(found.inputs.weight, kernel.T)
        weights.put(found.gates.weight, hidden[:, : 2 * UNITS].T)
        weights.put(found.candidate.weight, hidden[:, 2 * UNITS :].T)
        for array in biases:
            weights.put(found.inputs.bias, array)

    return Brick(name, SHAPE, tf, torch, copy, out=lambda shape: (shape[0], UNITS))


def stepwise(name: str, kind: str) -> Brick:
    """A cell, step by step: Keras' RNN around it, a loop in Python around PyTorch's."""

    def tf(name: str, _shape: Shape) -> Any:
        import keras

        layers = keras.layers
        cell = getattr(layers, {"RNN": "SimpleRNN"}.get(kind, kind) + "Cell")(UNITS)
        return layers.RNN(cell, return_sequences=True, name=name)

    def torch(shape: Shape) -> Any:
        import torch

        def forward(self: Any, x: Any) -> Any:
            start = x.new_zeros(x.shape[0], UNITS)
            state = (start, start) if kind == "LSTM" else start
            found = []
            for step in x.unbind(1):
                state = self.cell(step, state)
                found.append(state[0] if kind == "LSTM" else state)
            return torch.stack(found, 1)

        return module(forward, cell=getattr(torch.nn, kind + "Cell")(shape[-1], UNITS))

    def copy(layer: Any, found: Any) -> None:
        weights.cell(layer.cell, found.cell)

    return Brick(name, SHAPE, tf, torch, copy, out=lambda shape: (shape[0], UNITS))


BRICKS = (
    recurrent("rnn", "RNN"),
    recurrent("rnn_relu", "RNN", activation="relu"),
    recurrent("rnn_no_bias", "RNN", bias=False),
    recurrent("gru", "GRU"),
    recurrent("gru_no_bias", "GRU", bias=False),
    recurrent("gru_last", "GRU", last=True),
    recurrent("gru_steps_first", "GRU", steps_first=True),
    recurrent("gru_unrolled", "GRU", unroll=True),
    recurrent("gru_stacked_both_ways", "GRU", levels=2, both_ways=True),
    reset_before("gru_reset_before"),
    reset_before("gru_reset_before_no_bias", bias=False),
    recurrent("lstm", "LSTM"),
    recurrent("lstm_no_bias", "LSTM", bias=False),
    recurrent("lstm_last", "LSTM", last=True),
    recurrent("lstm_stacked", "LSTM", levels=2),
    recurrent("lstm_both_ways", "LSTM", both_ways=True),
    stepwise("rnn_cell", "RNN"),
    stepwise("gru_cell", "GRU"),
    stepwise("lstm_cell", "LSTM"),
)


def resized(shape: Shape, p: Any) -> Shape:
    """The inputs with the pair's number of steps."""
    return (p.steps, *shape[1:])


PAIR, inputs, build_keras, build_torch, copy_weights = pair(
    "family_recurrent",
    branches(BRICKS),
    notes=(
        "Every layer is a branch of its own and all outputs are returned; two samples.",
        "PyTorch's second bias per gate is 0 where Keras has none: one sum more per gate and step, equal outputs.",
    ),
    params={"steps": SHAPE[0]},
    resized=resized,
)
