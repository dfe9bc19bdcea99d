"""A word-level LSTM language model, the medium one of Zaremba et al.: embedding, two LSTM layers of 650, dense.

Token ids (1, 35) -> logits of the next token (1, 35, 10000).

How the frameworks differ here
* PyTorch's LSTM has two biases per gate, Keras' one: one sum more per gate and step in PyTorch.  The second one is 0
  here, so outputs are equal.
* One nn.LSTM holds both layers, Keras has two; gates are ordered i, f, g, o in both.
* On the CPU, in float32, PyTorch runs an LSTM layer as one oneDNN kernel: what counts ATen ops sees no product in it.
"""

from typing import Any, List

from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair(
    name="lstm_lm",
    params={"batch": 1, "steps": 35, "vocabulary": 10000, "units": 650},
    layers=(
        Layer("embedding", "embedding", "embedding"),
        Layer("lstm", ("lstm_1", "lstm_2"), "lstm"),
        Layer("dense", "dense", "dense"),
    ),
    notes=(
        "PyTorch's LSTM adds a second bias per gate and step, which Keras' does not have; it is 0 here.",
        "The network is the medium LSTM of Zaremba et al. 2014 (arXiv:1409.2329), untrained, without its dropout.",
    ),
)

PROOF = {"steps": "7", "vocabulary": "30", "units": "12"}
"""Equivalence is shown here, where it takes seconds to change every weight."""


def inputs(p: Any) -> List[Input]:
    """Token ids: (batch, steps)."""
    return [Input("tokens", (p.batch, p.steps), "int64")]


def build_keras(p: Any, keras: Any) -> Any:
    """The Keras model."""
    layers = keras.layers
    x = start = layers.Input(batch_shape=(p.batch, p.steps), dtype="int64", name="tokens")
    x = layers.Embedding(p.vocabulary, p.units, name="embedding")(x)
    x = layers.LSTM(p.units, return_sequences=True, name="lstm_1")(x)
    x = layers.LSTM(p.units, return_sequences=True, name="lstm_2")(x)
    x = layers.Dense(p.vocabulary, name="dense")(x)
    return keras.Model(start, x)


def build_torch(p: Any) -> Any:
    """The PyTorch module."""
    import torch

    class LstmLm(torch.nn.Module):
        """Same layers; both LSTM layers in one module."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(p.vocabulary, p.units)
            self.lstm = torch.nn.LSTM(p.units, p.units, num_layers=2, batch_first=True)
            self.dense = torch.nn.Linear(p.units, p.vocabulary)

        def forward(self, x: Any) -> Any:
            x, _ = self.lstm(self.embedding(x))
            return self.dense(x)

    return LstmLm()


def copy_weights(tf_model: Any, torch_model: Any) -> None:
    """Give the PyTorch module the Keras model's weights."""
    import torch

    def put(parameter: Any, array: Any) -> None:
        parameter.data.copy_(torch.as_tensor(array.copy()))

    put(torch_model.embedding.weight, tf_model.get_layer("embedding").get_weights()[0])
    for index in (0, 1):
        kernel, recurrent, bias = tf_model.get_layer(f"lstm_{index + 1}").get_weights()
        put(getattr(torch_model.lstm, f"weight_ih_l{index}"), kernel.T)
        put(getattr(torch_model.lstm, f"weight_hh_l{index}"), recurrent.T)
        put(getattr(torch_model.lstm, f"bias_ih_l{index}"), bias)
        getattr(torch_model.lstm, f"bias_hh_l{index}").data.zero_()
    kernel, bias = tf_model.get_layer("dense").get_weights()
    put(torch_model.dense.weight, kernel.T)
    put(torch_model.dense.bias, bias)
