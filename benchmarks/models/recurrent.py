"""A GRU over ``steps`` steps, in both frameworks: its trace does not depend on how many."""

from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair("recurrent", {"steps": 100, "width": 32, "units": 32}, (Layer("gru", "gru", "gru"),))


def inputs(p):
    return [Input("x", (1, p.steps, p.width))]


def build_tf(p):
    import tensorflow as tf

    given = tf.keras.Input((p.steps, p.width), batch_size=1)
    return tf.keras.Model(given, tf.keras.layers.GRU(p.units, name="gru")(given))


def build_torch(p):
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = torch.nn.GRU(p.width, p.units, batch_first=True)

        def forward(self, x):
            return self.gru(x)[0][:, -1]

    return Net()
